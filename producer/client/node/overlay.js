import { unsupported } from '../shared/unsupported.js';

/**
 * A process has no picture of itself.
 * @returns {import('../shared/unsupported.js').Unsupported}
 */
export function overlay() {
  return unsupported('highlights', 'Node');
}
