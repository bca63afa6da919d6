import { MAX_CHECKED, captureBody, requestLimit } from './checked.js';
import { sendRequestBody } from './fetch.js';
import { bodyType, parseType, readRequestBody } from './request.js';
import { callSite } from './stack.js';

/** @typedef {import('./fetch.js').NetOptions} NetOptions */

/**
 * A request on its way.
 * @typedef {{id: string, answered: boolean, ended: boolean, loaded: number, type: string}} Call
 */

/**
 * What is known of an XMLHttpRequest between its open and its end.
 * @typedef {{method: string, url: string, async: boolean, headers: [string, string][], call: Call | undefined, watched: boolean}} Xhr
 */

/**
 * Records every XMLHttpRequest. The page's calls run first and unchanged. A body
 * is read when it is there as the page gets it, and never asked for otherwise.
 * @param {NetOptions} o
 */
export function captureXHR(o) {
  const proto = o.scope.XMLHttpRequest?.prototype;
  if (!proto) return;
  const { patches, faults } = o;
  /** @type {WeakMap<object, Xhr>} */
  const known = new WeakMap();
  patches.method(proto, 'open', original => ({
    /** @this {any} @param {unknown[]} args */
    open(...args) {
      const result = Reflect.apply(original, this, args);
      if (patches.active) faults.run(() => known.set(this, opened(o, known.get(this), args)));
      return result;
    },
  }).open);
  patches.method(proto, 'setRequestHeader', original => ({
    /** @this {any} @param {unknown[]} args */
    setRequestHeader(...args) {
      const result = Reflect.apply(original, this, args);
      faults.run(() => known.get(this)?.headers.push([String(args[0]), String(args[1])]));
      return result;
    },
  }).setRequestHeader);
  patches.method(proto, 'send', original => ({
    /** @this {any} @param {unknown[]} args */
    send(...args) {
      const x = patches.active ? known.get(this) : undefined;
      if (!x || x.call && !x.call.ended) return Reflect.apply(original, this, args);
      faults.run(() => start(o, x, this, args[0], () => known.get(this)));
      try {
        return Reflect.apply(original, this, args);
      } catch (e) {
        faults.run(() => ended(o, x, this, 'error', e));
        throw e;
      }
    },
  }).send);
}

/**
 * @param {NetOptions} o
 * @param {Xhr | undefined} before
 * @param {unknown[]} args
 * @returns {Xhr}
 */
function opened(o, before, [method, url, async]) {
  // Opening again gives up what was under way, without an event.
  if (before?.call) finish(o, before.call, { canceled: true });
  const text = String(method);
  return {
    method: /^(?:delete|get|head|options|post|put)$/i.test(text) ? text.toUpperCase() : text,
    url: absolute(String(url), o.base()), async: async === undefined || Boolean(async),
    headers: [], call: undefined, watched: before?.watched ?? false,
  };
}

/**
 * @param {NetOptions} o
 * @param {Xhr} x
 * @param {any} xhr
 * @param {unknown} body
 * @param {() => Xhr | undefined} current what is known of the XMLHttpRequest, which may be opened again
 */
function start(o, x, xhr, body, current) {
  const { record, base, faults } = o;
  const id = o.id();
  const hasBody = body !== undefined && body !== null && x.method !== 'GET' && x.method !== 'HEAD';
  const read = hasBody ? readRequestBody(body, requestLimit(o)) : undefined;
  x.call = { id, answered: false, ended: false, loaded: 0, type: '' };
  record('start', {
    id, method: x.method, url: x.url, headers: x.headers, type: 'xhr', documentURL: base(), stack: callSite(),
    ...(hasBody ? { hasBody: true, bodyBytes: read ? read.total : -1 } : {}),
  });
  if (hasBody) sendRequestBody(o, id, read, bodyType(x.headers, body));
  if (x.watched) return;
  x.watched = true;
  // The page's own listeners are before these, since it added them before it sent.
  /** @type {(type: string, f: (x: Xhr, c: Call, e: any) => void) => void} */
  const on = (type, f) => xhr.addEventListener(type, (/** @type {Event} */ e) => faults.run(() => {
    const now = current();
    if (now?.call && !now.call.ended) f(now, now.call, e);
  }));
  on('readystatechange', (now, c) => xhr.readyState >= 2 && xhr.status > 0 && answered(o, c, now, xhr));
  on('progress', (now, c, e) => progress(o, c, e.loaded));
  for (const type of ['load', 'error', 'abort', 'timeout']) on(type, now => ended(o, now, xhr, type));
}

/**
 * @param {NetOptions} o
 * @param {Call} c
 * @param {Xhr} x
 * @param {any} xhr
 */
function answered(o, c, x, xhr) {
  if (c.answered) return;
  c.answered = true;
  const headers = String(xhr.getAllResponseHeaders() ?? '').split('\r\n').filter(Boolean).map(line => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const { mimeType, charset } = parseType(xhr.getResponseHeader('content-type') ?? '');
  c.type = mimeType;
  o.record('response', {
    id: c.id, status: xhr.status, statusText: xhr.statusText, headers, mimeType, hasBody: x.method !== 'HEAD' && xhr.status !== 204 && xhr.status !== 304,
    ...(charset ? { charset } : {}),
    ...(xhr.responseURL && xhr.responseURL !== x.url.replace(/#.*/, '') ? { url: xhr.responseURL } : {}),
  });
}

/**
 * @param {NetOptions} o
 * @param {Call} c
 * @param {number} loaded
 */
function progress(o, c, loaded) {
  if (loaded <= c.loaded || !c.answered) return;
  o.record('dataReceived', { id: c.id, bytes: loaded - c.loaded });
  c.loaded = loaded;
}

/**
 * @param {NetOptions} o
 * @param {Xhr} x
 * @param {any} xhr
 * @param {string} type the event that ended it
 * @param {unknown} [error]
 */
function ended(o, x, xhr, type, error) {
  const c = x.call;
  if (!c || c.ended) return;
  if (type !== 'load') {
    const text = type === 'timeout' ? 'the request took longer than its timeout' : type === 'abort' ? 'aborted' : `the request failed${error instanceof Error ? `: ${error.message}` : ''}`;
    finish(o, c, { error: text, canceled: type === 'abort' });
    return;
  }
  answered(o, c, x, xhr);
  const body = responseBody(xhr, o.redact?.concerns(c.type) ? MAX_CHECKED : o.limits().responseBodyBytes);
  if (!(body?.bytes instanceof Promise)) {
    finish(o, c, { body: body && { bytes: body.bytes, total: body.total } });
    return;
  }
  c.ended = true;
  body.bytes.then(bytes => {
    c.ended = false;
    finish(o, c, { body: { bytes, total: body.total } });
  }).catch(e => o.faults.add(e));
}

/**
 * @param {NetOptions} o
 * @param {Call} c
 * @param {{body?: {bytes: Uint8Array, total: number}, error?: string, canceled?: boolean}} how no body means that it was not seen
 */
function finish(o, c, { body, error, canceled }) {
  if (c.ended) return;
  c.ended = true;
  if (!c.answered) {
    o.record('error', { id: c.id, text: error ?? 'canceled', ...(canceled ? { canceled } : {}) });
    return;
  }
  const sink = captureBody(o, c.id, 'res', c.type);
  if (body) sink.write(body.bytes);
  const total = Math.max(body?.total ?? 0, c.loaded);
  sink.end(error !== undefined || canceled ? 'aborted' : 'complete', total);
  const cut = sink.truncated || sink.bytes < total;
  progress(o, c, total);
  o.record('end', {
    id: c.id, bytes: total, captured: sink.captured,
    ...(cut ? { truncated: true } : {}), ...(sink.redacted ? { redacted: true } : {}), ...(error !== undefined ? { error } : {}), ...(canceled ? { canceled } : {}),
  });
}

/**
 * The body as the page gets it. A response of the type json is written anew,
 * since its text is gone; one of the type document is left alone.
 * @param {any} xhr
 * @param {number} limit bytes
 * @returns {{bytes: Uint8Array | Promise<Uint8Array>, total: number} | undefined}
 */
function responseBody(xhr, limit) {
  switch (xhr.responseType) {
    case '': case 'text': return readRequestBody(xhr.responseText, limit);
    case 'json': return xhr.response === null ? undefined : readRequestBody(JSON.stringify(xhr.response), limit);
    case 'document': return undefined;
  }
  return readRequestBody(xhr.response ?? undefined, limit);
}

/**
 * @param {string} url
 * @param {string} base
 * @returns {string}
 */
function absolute(url, base) {
  try {
    return new URL(url, base).href;
  } catch {
    return url;
  }
}
