import { unsupported } from '../shared/unsupported.js';

/** @typedef {import('../shared/unsupported.js').Unsupported} Unsupported */

/**
 * A process neither hides nor returns; its exit ends its connection.
 * @returns {Unsupported}
 */
export function watchLife() {
  return unsupported('page transitions', 'Node');
}
