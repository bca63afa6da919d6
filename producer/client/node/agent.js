import { unsupported } from '../shared/unsupported.js';

/**
 * A process has no components that an agent could tell of.
 * @returns {import('../shared/unsupported.js').Unsupported}
 */
export function watchAgent() {
  return unsupported('runespect agents', 'Node');
}

/** @param {object} message */
export function tellAgent(message) {
  void message;
}
