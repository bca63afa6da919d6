/** @typedef {import('../shared/resources.js').Entry} Entry */

/**
 * Tells of what the browser loaded, from the beginning of the page on.
 * @param {(entries: Entry[]) => void} loaded
 * @returns {() => void} ends it
 */
export function watchResources(loaded) {
  let told = false;
  const observer = new PerformanceObserver(list => loaded(/** @type {any} */ (list.getEntries().filter(e => {
    if (e.entryType !== 'navigation') return true;
    // Firefox tells of the document twice: when it is asked, and when all is loaded.
    const again = told;
    told = true;
    return !again;
  }))));
  observer.observe({ type: 'navigation', buffered: true });
  observer.observe({ type: 'resource', buffered: true });
  return () => observer.disconnect();
}
