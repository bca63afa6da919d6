import { unsupported } from '../shared/unsupported.js';

/**
 * A process has no development server that served it.
 * @param {string} loc
 * @param {typeof fetch} request
 * @returns {import('../shared/unsupported.js').Unsupported}
 */
export function openInEditor(loc, request) {
  void loc;
  void request;
  return unsupported('editors', 'Node');
}
