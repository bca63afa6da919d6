/**
 * A process that is not attached to tells nothing of its scripts: natscope
 * attach shows them, and can set breakpoints in them.
 * @returns {import('../shared/sources.js').Found[]}
 */
export function listScripts() {
  return [];
}

/**
 * @param {(f: import('../shared/sources.js').Found) => void} found
 * @returns {() => void}
 */
export function watchScripts(found) {
  void found;
  return () => {};
}

/**
 * @param {string} url
 * @returns {boolean}
 */
export function readable(url) {
  void url;
  return false;
}
