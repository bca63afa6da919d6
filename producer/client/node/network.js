import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import http from 'node:http';
import { captureBody } from '../shared/checked.js';
import { bodyType, parseType } from '../shared/request.js';
import { callSite } from '../shared/stack.js';
import { isOurs } from './socket.js';

/** @typedef {import('../shared/fetch.js').NetOptions} NetOptions */

/**
 * A request on its way.
 * @typedef {{id: string, request: import('../shared/body.js').BodyCapture, sent: boolean, answered: boolean, ended: boolean}} Call
 */

/**
 * Records the requests of http and https with their bodies, and those of undici
 * without. What the program reads, and when, stays as it is.
 * @param {NetOptions} o
 * @returns {() => void} ends it
 */
export function watchNetwork(o) {
  const undos = [watchHTTP(o), watchUndici(o)];
  return () => undos.forEach(undo => undo());
}

/**
 * @param {NetOptions} o
 * @returns {() => void}
 */
function watchHTTP(o) {
  const { faults, patches } = o;
  /** @type {WeakMap<object, Call>} */
  const calls = new WeakMap();
  const proto = /** @type {any} */ (http.ClientRequest.prototype);
  for (const name of ['write', 'end']) {
    patches.method(proto, name, original => ({
      /** @this {any} @param {unknown[]} args */
      [name](...args) {
        if (patches.active && !isOurs(this)) faults.run(() => sending(o, calls, this, args[0], args[1], name === 'end'));
        return Reflect.apply(original, this, args);
      },
    }[name]));
  }
  const responded = (/** @type {any} */ m) => faults.run(() => {
    const call = calls.get(m.request);
    if (call && patches.active) answered(o, call, m.request, m.response);
  });
  subscribe('http.client.response.finish', responded);
  return () => unsubscribe('http.client.response.finish', responded);
}

/**
 * @param {NetOptions} o
 * @param {WeakMap<object, Call>} calls
 * @param {any} request
 * @param {unknown} chunk
 * @param {unknown} encoding
 * @param {boolean} last
 */
function sending(o, calls, request, chunk, encoding, last) {
  let call = calls.get(request);
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk, typeof encoding === 'string' ? /** @type {BufferEncoding} */ (encoding) : 'utf8') : chunk instanceof Uint8Array ? chunk : undefined;
  if (!call) {
    call = begin(o, request, bytes !== undefined || !last && request.method !== 'GET');
    calls.set(request, call);
  }
  if (call.sent) return;
  if (bytes) call.request.write(bytes);
  if (!last) return;
  call.sent = true;
  if (call.request.bytes === 0) return;
  call.request.end('complete');
  o.record('requestBodyEnd', { id: call.id, bytes: call.request.bytes, captured: call.request.captured, ...(call.request.truncated ? { truncated: true } : {}), ...(call.request.redacted ? { redacted: true } : {}) });
}

/**
 * @param {NetOptions} o
 * @param {any} request
 * @param {boolean} hasBody
 * @returns {Call}
 */
function begin(o, request, hasBody) {
  const id = o.id();
  const { record, faults } = o;
  /** @type {[string, string][]} */
  const headers = Object.entries(request.getHeaders()).flatMap(([k, v]) => (Array.isArray(v) ? v : [v]).map(x => /** @type {[string, string]} */ ([k, String(x)])));
  const { type, encoded } = bodyType(headers, undefined);
  /** @type {Call} */
  const call = {
    id, sent: false, answered: false, ended: false, request: captureBody(o, id, 'req', type, { encoded }),
  };
  const host = request.getHeader('host') ?? request.host ?? '';
  record('start', {
    id, method: request.method, url: `${request.protocol}//${host}${request.path}`, type: 'other', documentURL: o.base(), stack: callSite(), headers,
    ...(hasBody ? { hasBody, bodyBytes: -1 } : {}),
  });
  const error = errorOf(request);
  request.once('close', () => faults.run(() => {
    if (call.ended || call.answered) return;
    call.ended = true;
    record('error', { id, text: error()?.message ?? 'the request was given up', ...(gaveUp(error()) ? { canceled: true } : {}) });
  }));
  return call;
}

/**
 * @param {NetOptions} o
 * @param {Call} call
 * @param {any} request
 * @param {any} response
 */
function answered(o, call, request, response) {
  if (call.answered) return;
  call.answered = true;
  const { record, faults } = o;
  const raw = response.rawHeaders ?? [];
  const { mimeType, charset } = parseType(String(response.headers['content-type'] ?? ''));
  /** @type {[string, string][]} */
  const headers = Array.from({ length: raw.length / 2 }, (_, i) => [String(raw[2 * i]), String(raw[2 * i + 1])]);
  const body = captureBody(o, call.id, 'res', mimeType, { encoded: bodyType(headers, undefined).encoded });
  const hasBody = request.method !== 'HEAD' && response.statusCode !== 204 && response.statusCode !== 304;
  record('response', {
    id: call.id, status: response.statusCode, statusText: response.statusMessage ?? '', mimeType, hasBody, protocol: `http/${response.httpVersion}`, headers,
    ...(charset ? { charset } : {}),
    ...(response.socket?.remoteAddress ? { remoteIP: response.socket.remoteAddress, remotePort: response.socket.remotePort } : {}),
    ...(request.reusedSocket ? { reused: true } : {}),
  });
  const end = (/** @type {object} */ how, /** @type {import('../shared/protocol.js').BodyEnd} */ reason) => {
    if (call.ended) return;
    call.ended = true;
    body.end(reason);
    record('end', { id: call.id, bytes: body.bytes, captured: body.captured, ...(body.truncated ? { truncated: true } : {}), ...(body.redacted ? { redacted: true } : {}), ...how });
  };
  // What the parser pushes is what the program will read; nothing is read for us.
  const { push } = response;
  response.push = function (/** @type {any} */ chunk, /** @type {any} */ encoding) {
    faults.run(() => {
      if (chunk === null) end({}, 'complete');
      else if (!call.ended) {
        body.write(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
        record('dataReceived', { id: call.id, bytes: chunk.length });
      }
    });
    return push.call(this, chunk, encoding);
  };
  const error = errorOf(response);
  response.once('close', () => faults.run(() => {
    if (!response.complete) end({ error: error()?.message ?? 'the response was given up', ...(gaveUp(error()) ? { canceled: true } : {}) }, 'aborted');
    else end({}, 'complete');
  }));
}

/**
 * Notes the error that an emitter tells. A listener would keep an error that
 * nobody handles from ending the program.
 * @param {any} emitter
 * @returns {() => any}
 */
function errorOf(emitter) {
  /** @type {any} */
  let error;
  const { emit } = emitter;
  emitter.emit = function (/** @type {unknown[]} */ ...args) {
    if (args[0] === 'error') error = args[1];
    return Reflect.apply(emit, this, args);
  };
  return () => error;
}

/**
 * @param {any} error
 * @returns {boolean} whether the program ended it itself
 */
function gaveUp(error) {
  return !error || error.name === 'AbortError' || error.name === 'TimeoutError' || error.code === 'ABORT_ERR';
}

/**
 * @param {NetOptions} o
 * @returns {() => void}
 */
function watchUndici(o) {
  const { record, faults, patches } = o;
  /** @type {WeakMap<object, {id: string, answered: boolean, ended: boolean}>} */
  const calls = new WeakMap();
  /** @type {[string, (m: any) => void][]} */
  const channels = [
    ['undici:request:create', ({ request }) => {
      const headers = headersOf(request.headers);
      // fetch is captured as a call.
      if (headers.some(([k]) => k.toLowerCase() === 'sec-fetch-mode')) return;
      const id = o.id();
      calls.set(request, { id, answered: false, ended: false });
      record('start', { id, method: request.method, url: `${request.origin}${request.path}`, type: 'other', documentURL: o.base(), stack: callSite(), headers });
    }],
    ['undici:request:headers', ({ request, response }) => {
      const call = calls.get(request);
      if (!call || call.answered) return;
      call.answered = true;
      const headers = headersOf(response.headers);
      const { mimeType, charset } = parseType(headers.find(([k]) => k.toLowerCase() === 'content-type')?.[1] ?? '');
      record('response', { id: call.id, status: response.statusCode, statusText: response.statusText ?? '', headers, mimeType, ...(charset ? { charset } : {}), hasBody: true });
    }],
    ['undici:request:trailers', ({ request }) => {
      const call = calls.get(request);
      if (!call || call.ended) return;
      call.ended = true;
      record('end', { id: call.id, bytes: 0, captured: 0, truncated: true });
    }],
    ['undici:request:error', ({ request, error }) => {
      const call = calls.get(request);
      if (!call || call.ended) return;
      call.ended = true;
      const text = String(error?.message ?? error);
      if (call.answered) record('end', { id: call.id, bytes: 0, captured: 0, truncated: true, error: text });
      else record('error', { id: call.id, text, ...(error?.name === 'AbortError' ? { canceled: true } : {}) });
    }],
  ];
  const listeners = channels.map(([name, f]) => {
    const listener = (/** @type {unknown} */ m) => void faults.run(() => patches.active && f(m));
    subscribe(name, listener);
    return () => unsubscribe(name, listener);
  });
  return () => listeners.forEach(undo => undo());
}

/**
 * undici tells headers as a text, as a list of names and values, or as an object.
 * @param {any} headers
 * @returns {[string, string][]}
 */
function headersOf(headers) {
  if (typeof headers === 'string') {
    return headers.split('\r\n').filter(Boolean).map(line => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
  }
  if (!Array.isArray(headers)) return Object.entries(headers ?? {}).map(([k, v]) => [k, String(v)]);
  return Array.from({ length: headers.length / 2 }, (_, i) => [String(headers[2 * i]), String(headers[2 * i + 1])]);
}
