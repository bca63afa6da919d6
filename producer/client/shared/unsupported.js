/**
 * The result of an operation that an environment cannot do. It is returned, not
 * thrown, so that both environments have the same operations.
 * @typedef {{ok: false, code: 'unsupported', message: string}} Unsupported
 */

/**
 * @param {string} what the operation, as in "page titles"
 * @param {string} where the environment, as in "Node"
 * @returns {Unsupported}
 */
export function unsupported(what, where) {
  return { ok: false, code: 'unsupported', message: `${what} are not supported in ${where}` };
}

/**
 * @param {unknown} v
 * @returns {v is Unsupported}
 */
export function isUnsupported(v) {
  return v !== null && typeof v === 'object' && /** @type {any} */ (v).code === 'unsupported';
}
