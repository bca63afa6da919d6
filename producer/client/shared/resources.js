import { parseType } from './request.js';

/**
 * An entry of the platform's resource timing.
 * @typedef {{[key: string]: any, name: string, entryType: string, initiatorType: string, startTime: number, responseEnd: number}} Entry
 */

/** What asked for a resource, in the words of the protocol. */
const TYPES = /** @type {Record<string, string>} */ ({
  script: 'script', css: 'stylesheet', link: 'stylesheet', img: 'image', image: 'image', input: 'image', video: 'media', audio: 'media', track: 'media',
  fetch: 'fetch', xmlhttprequest: 'xhr', beacon: 'ping', navigation: 'document', iframe: 'document', frame: 'document',
});

/**
 * Records what the browser loaded by itself: the document, scripts, styles,
 * images. There are times and sizes, and no bodies. What the page asks for by
 * calls that are captured is left out.
 * @param {import('./fetch.js').NetOptions} o
 * @param {Entry[]} entries
 * @param {(e: Entry) => boolean} captured whether an entry was seen as a call
 */
export function recordResources({ record, id, base }, entries, captured) {
  for (const e of entries) {
    if (captured(e) || !/^https?:/.test(e.name)) continue;
    const request = id();
    const type = /\.(?:woff2?|ttf|otf)(?:[?#]|$)/.test(e.name) ? 'font' : TYPES[e.initiatorType] ?? 'other';
    const { mimeType, charset } = parseType(e.contentType ?? '');
    record('start', { id: request, method: 'GET', url: e.name, type, documentURL: base(), headers: [] }, e.startTime);
    // Nothing came, or the browser does not say: of other origins it tells the time of the end only.
    if (e.responseStatus >= 400 || e.responseEnd > 0) {
      record('response', {
        id: request, status: e.responseStatus || 200, headers: [], mimeType, ...(charset ? { charset } : {}),
        protocol: e.nextHopProtocol || undefined, hasBody: e.decodedBodySize > 0, timing: timing(e),
      }, e.responseStart || e.responseEnd);
      record('end', { id: request, bytes: e.decodedBodySize ?? 0, wire: e.transferSize || undefined, captured: 0, ...(e.decodedBodySize > 0 ? { truncated: true } : {}) }, e.responseEnd);
    } else {
      record('error', { id: request, text: 'it was not loaded' }, e.startTime + (e.duration || 0));
    }
  }
}

/**
 * @param {Entry} e
 * @returns {Record<string, number>} phases in milliseconds after the start, -1 for none
 */
function timing(e) {
  const at = (/** @type {number} */ t) => t > 0 ? Math.max(0, Math.round((t - e.startTime) * 1000) / 1000) : -1;
  const phase = (/** @type {number} */ from, /** @type {number} */ to) => to > from ? [at(from), at(to)] : [-1, -1];
  const [dnsStart, dnsEnd] = phase(e.domainLookupStart, e.domainLookupEnd);
  const [connectStart, connectEnd] = phase(e.connectStart, e.connectEnd);
  const [tlsStart, tlsEnd] = e.secureConnectionStart > 0 ? phase(e.secureConnectionStart, e.connectEnd) : [-1, -1];
  return {
    dnsStart, dnsEnd, connectStart, connectEnd, tlsStart, tlsEnd,
    sendStart: at(e.requestStart), sendEnd: at(e.requestStart), headersStart: at(e.responseStart), headersEnd: at(e.responseStart),
  };
}
