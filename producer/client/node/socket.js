import { unsupported } from '../shared/unsupported.js';

/** @typedef {import('../shared/unsupported.js').Unsupported} Unsupported */

/**
 * Node's client has no transport.
 * @returns {Unsupported}
 */
export function connect() {
  return unsupported('connections to an ingest', 'Node');
}
