import { unsupported } from '../shared/unsupported.js';

/** @typedef {import('../shared/unsupported.js').Unsupported} Unsupported */

/**
 * Uncaught exceptions are seen through the inspector.
 * @returns {Unsupported}
 */
export function watchErrors() {
  return unsupported('uncaught exceptions', 'Node');
}
