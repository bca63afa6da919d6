import { unsupported } from '../shared/unsupported.js';

/**
 * Nobody points at a process.
 * @returns {import('../shared/unsupported.js').Unsupported}
 */
export function pick() {
  return unsupported('picks', 'Node');
}
