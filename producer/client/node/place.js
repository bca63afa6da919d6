import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { unsupported } from '../shared/unsupported.js';

/** @typedef {import('../shared/unsupported.js').Unsupported} Unsupported */

/** @returns {import('../shared/client.js').Place} the program that runs */
export function place() {
  const file = process.argv[1];
  return { url: file ? pathToFileURL(file).href : '', title: file ? basename(file) : 'node', visible: undefined };
}

/**
 * A process has no address that could change.
 * @returns {Unsupported}
 */
export function watchPlace() {
  return unsupported('changes of the address', 'Node');
}
