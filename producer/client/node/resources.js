import { unsupported } from '../shared/unsupported.js';

/** @typedef {import('../shared/unsupported.js').Unsupported} Unsupported */

/**
 * A process loads nothing by itself that it would tell.
 * @returns {Unsupported}
 */
export function watchResources() {
  return unsupported('resource timings', 'Node');
}
