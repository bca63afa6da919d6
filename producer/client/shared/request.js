/** @typedef {[string, string][]} HeaderList */

/**
 * What can be told of a fetch before it is made, without touching what it sends.
 * @typedef {object} RequestInfo
 * @property {string} method
 * @property {string} url absolute, if it can be
 * @property {HeaderList} headers
 * @property {unknown} body what init gives; undefined if there is none
 * @property {boolean} hasBody
 * @property {AbortSignal | undefined} signal
 */

/**
 * Reads the arguments of a fetch. Nothing is consumed: not a body, and not an
 * iterator of headers, which could be read only once.
 * @param {unknown} input
 * @param {any} init
 * @param {string} base
 * @returns {RequestInfo}
 */
export function readRequest(input, init, base) {
  const request = input instanceof Request ? input : undefined;
  const body = init?.body ?? undefined;
  return {
    method: methodOf(init?.method ?? request?.method ?? 'GET'),
    url: absolute(request ? request.url : String(input), base),
    headers: readHeaders(init?.headers ?? request?.headers),
    body,
    hasBody: body !== undefined || Boolean(request?.body),
    signal: init?.signal ?? request?.signal ?? undefined,
  };
}

/**
 * @param {unknown} headers
 * @returns {HeaderList}
 */
export function readHeaders(headers) {
  if (headers instanceof Headers) return [...headers];
  if (Array.isArray(headers)) return headers.filter(Array.isArray).map(h => [String(h[0]), String(h[1])]);
  if (headers !== null && typeof headers === 'object' && !(Symbol.iterator in headers)) {
    return Object.entries(headers).map(([k, v]) => [k, String(v)]);
  }
  return [];
}

/**
 * Returns the bytes of a request body that can be had cheaply, up to a limit, and
 * its whole size. Streams and forms are left alone: reading them would take
 * them away from the page, or cost it.
 * @param {unknown} body
 * @param {number} limit bytes
 * @returns {{bytes: Uint8Array | Promise<Uint8Array>, total: number} | undefined}
 */
export function readRequestBody(body, limit) {
  if (typeof body === 'string') return encodeText(body, limit);
  if (body instanceof URLSearchParams) return encodeText(body.toString(), limit);
  if (body instanceof ArrayBuffer) return { bytes: new Uint8Array(body.slice(0, limit)), total: body.byteLength };
  if (ArrayBuffer.isView(body)) {
    return { bytes: new Uint8Array(body.buffer, body.byteOffset, Math.min(limit, body.byteLength)).slice(), total: body.byteLength };
  }
  if (typeof Blob !== 'undefined' && body instanceof Blob) {
    return { bytes: body.slice(0, limit).arrayBuffer().then(b => new Uint8Array(b)), total: body.size };
  }
  return undefined;
}

/**
 * @param {HeaderList} headers of the request
 * @param {unknown} body
 * @returns {{type: string, encoded: boolean}} the content type that the body goes with, and whether it has a content encoding
 */
export function bodyType(headers, body) {
  const of = (/** @type {string} */ name) => headers.find(([k]) => k.toLowerCase() === name)?.[1];
  const own = body instanceof URLSearchParams ? 'application/x-www-form-urlencoded' : typeof Blob !== 'undefined' && body instanceof Blob ? body.type : '';
  return { type: of('content-type') ?? own, encoded: !/^(?:identity)?$/i.test(of('content-encoding')?.trim() ?? '') };
}

/**
 * @param {string} text
 * @param {number} limit
 * @returns {{bytes: Uint8Array, total: number}}
 */
function encodeText(text, limit) {
  const bytes = new TextEncoder().encode(text);
  return { bytes: bytes.subarray(0, limit), total: bytes.length };
}

/**
 * @param {string} type a content type
 * @returns {{mimeType: string, charset: string}}
 */
export function parseType(type) {
  const [mime, ...params] = type.split(';');
  const charset = params.map(p => /^\s*charset="?([^"]*)"?\s*$/i.exec(p)?.[1]).find(c => c !== undefined);
  return { mimeType: mime.trim().toLowerCase(), charset: charset ?? '' };
}

/**
 * @param {unknown} method
 * @returns {string} the method as fetch sends it
 */
function methodOf(method) {
  const m = String(method);
  const upper = m.toUpperCase();
  return ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'].includes(upper) ? upper : m;
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
    return url || base;
  }
}
