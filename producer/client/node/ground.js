/**
 * A process has no tab to remember an id in: its id is that of its program and host.
 * @returns {import('../shared/identity.js').Ground}
 */
export function ground() {
  return { load: undefined, save: undefined, lock: undefined, wait: ms => new Promise(resolve => setTimeout(resolve, ms).unref()) };
}

/** @returns {string} the name and version of the environment */
export function runtime() {
  return `Node.js ${process.versions.node}`;
}
