import { unsupported } from '../shared/unsupported.js';

/** @typedef {import('../shared/unsupported.js').Unsupported} Unsupported */

/**
 * A process has no address of its own.
 * @returns {Unsupported}
 */
export function place() {
  return unsupported('page addresses', 'Node');
}

/**
 * A process has no address that could change.
 * @returns {Unsupported}
 */
export function watchPlace() {
  return unsupported('page addresses', 'Node');
}
