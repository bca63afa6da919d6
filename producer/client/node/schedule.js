import { unsupported } from '../shared/unsupported.js';

/** @typedef {import('../shared/unsupported.js').Unsupported} Unsupported */

/**
 * A process has no frames.
 * @returns {Unsupported}
 */
export function nextFlush() {
  return unsupported('animation frames', 'Node');
}
