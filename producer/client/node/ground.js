import { unsupported } from '../shared/unsupported.js';

/** @typedef {import('../shared/unsupported.js').Unsupported} Unsupported */

/**
 * A process has no tab to remember an id in.
 * @returns {Unsupported}
 */
export function ground() {
  return unsupported('tab identities', 'Node');
}

/**
 * The name of the environment.
 * @returns {Unsupported}
 */
export function runtime() {
  return unsupported('runtime names', 'Node');
}
