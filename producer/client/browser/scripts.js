/** @typedef {import('../shared/sources.js').Found} Found */

const HOME = new URL('../', import.meta.url).href;

/** @returns {Found[]} the scripts that this page loaded so far, and the page itself for what is inline */
export function listScripts() {
  /** @type {Found[]} */
  const out = [{ url: location.href.replace(/#.*/, ''), page: true }];
  for (const s of document.scripts) {
    if (s.src && !own(s.src)) out.push({ url: s.src, esm: s.type === 'module' });
  }
  for (const e of performance.getEntriesByType('resource')) {
    if (isScript(/** @type {PerformanceResourceTiming} */ (e))) out.push({ url: e.name, esm: true });
  }
  return out;
}

/**
 * Tells of scripts that the page loads from now on.
 * @param {(f: Found) => void} found
 * @returns {() => void} ends it
 */
export function watchScripts(found) {
  const observer = new PerformanceObserver(list => {
    for (const e of list.getEntries()) {
      if (isScript(/** @type {PerformanceResourceTiming} */ (e))) found({ url: e.name, esm: true });
    }
  });
  observer.observe({ type: 'resource' });
  return () => observer.disconnect();
}

/**
 * @param {string} url
 * @returns {boolean} whether the page may read what is at an address
 */
export function readable(url) {
  try {
    return new URL(url, location.href).origin === location.origin;
  } catch {
    return false;
  }
}

/**
 * @param {PerformanceResourceTiming} e
 * @returns {boolean}
 */
function isScript(e) {
  return !own(e.name) && (e.initiatorType === 'script' || e.initiatorType === 'other' && /\.m?js(?:[?#]|$)/.test(e.name));
}

/**
 * @param {string} url
 * @returns {boolean} whether it is one of natscope's own modules
 */
function own(url) {
  return url.startsWith(HOME) || url.startsWith(new URL('../client.js', HOME).href);
}
