import { unsupported } from '../shared/unsupported.js';

/**
 * A Node program becomes a source through its inspector, which shows more than a client inside of it could.
 * @param {import('../shared/client.js').Options} options
 * @returns {import('../shared/unsupported.js').Unsupported}
 */
export function start(options) {
  void options;
  return unsupported('clients inside of the program', 'Node; use natscope attach');
}
