/** @typedef {import('../shared/resources.js').Entry} Entry */

/**
 * Tells of what the browser loaded, from the beginning of the page on.
 * @param {(entries: Entry[]) => void} loaded
 * @returns {() => void} ends it
 */
export function watchResources(loaded) {
  const observer = new PerformanceObserver(list => loaded(/** @type {any} */ (list.getEntries())));
  observer.observe({ type: 'navigation', buffered: true });
  observer.observe({ type: 'resource', buffered: true });
  return () => observer.disconnect();
}
