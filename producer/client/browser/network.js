import { unsupported } from '../shared/unsupported.js';

/**
 * A page has no other ways to the network than those that are captured as calls.
 * @returns {import('../shared/unsupported.js').Unsupported}
 */
export function watchNetwork() {
  return unsupported('other ways to the network', 'browsers');
}
