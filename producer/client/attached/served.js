import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import http from 'node:http';
import { captureBody } from '../shared/checked.js';
import { bodyType, parseType } from '../shared/request.js';

/** @typedef {import('../shared/fetch.js').NetOptions} NetOptions */

/**
 * A request that is being answered.
 * @typedef {{id: string, request: import('../shared/body.js').BodyCapture, response: import('../shared/body.js').BodyCapture | undefined, told: boolean, ended: boolean}} Answering
 */

/**
 * Records the requests that the program answers with http and https, and what it
 * answers. What the program reads and writes, and when, stays as it is.
 * @param {NetOptions} o
 * @returns {() => void} ends it
 */
export function watchServed(o) {
  const { faults, patches } = o;
  /** @type {WeakMap<object, Answering>} by response */
  const all = new WeakMap();
  /** @type {any} the response that is written to at the moment */
  let writing;
  const proto = /** @type {any} */ (http.ServerResponse.prototype);
  for (const name of ['write', 'end']) {
    patches.method(proto, name, original => ({
      /** @this {any} @param {unknown[]} args */
      [name](...args) {
        const a = patches.active ? all.get(this) : undefined;
        // What is written inside of a write, as Node does in end, is written once.
        if (!a || writing === this || typeof args[0] === 'function' || this.writableEnded) return Reflect.apply(original, this, args);
        const bytes = faults.run(() => bytesOf(args[0], args[1]));
        const outer = writing;
        writing = this;
        let result;
        try {
          result = Reflect.apply(original, this, args);
        } finally {
          writing = outer;
        }
        faults.run(() => {
          tell(o, a, this);
          if (bytes && a.response) a.response.write(bytes);
          if (bytes) o.record('dataReceived', { id: a.id, bytes: bytes.length });
        });
        return result;
      },
    }[name]));
  }
  const started = (/** @type {any} */ m) => faults.run(() => {
    if (patches.active) all.set(m.response, begin(o, m.request, m.response));
  });
  subscribe('http.server.request.start', started);
  return () => unsubscribe('http.server.request.start', started);
}

/**
 * @param {unknown} chunk
 * @param {unknown} encoding
 * @returns {Uint8Array | undefined}
 */
function bytesOf(chunk, encoding) {
  if (typeof chunk === 'string') return Buffer.from(chunk, typeof encoding === 'string' ? /** @type {BufferEncoding} */ (encoding) : 'utf8');
  // The program may use the memory again.
  return chunk instanceof Uint8Array ? chunk.slice() : undefined;
}

/**
 * @param {any} message
 * @returns {[string, string][]} header lines as they came
 */
function lines(message) {
  const raw = message.rawHeaders ?? [];
  return Array.from({ length: raw.length / 2 }, (_, i) => [String(raw[2 * i]), String(raw[2 * i + 1])]);
}

/**
 * @param {NetOptions} o
 * @param {any} request
 * @param {any} response
 * @returns {Answering}
 */
function begin(o, request, response) {
  const { record, faults } = o;
  const id = o.id();
  const headers = lines(request);
  const { type, encoded } = bodyType(headers, undefined);
  const body = captureBody(o, id, 'req', type, { encoded });
  /** @type {Answering} */
  const a = { id, request: body, response: undefined, told: false, ended: false };
  const length = Number(request.headers['content-length']);
  const hasBody = length > 0 || request.headers['transfer-encoding'] !== undefined;
  const { remoteAddress, remotePort, encrypted } = request.socket;
  record('start', {
    id, direction: 'in', method: request.method, url: `${encrypted ? 'https' : 'http'}://${request.headers.host ?? 'localhost'}${request.url}`, type: 'other', headers,
    ...(remoteAddress ? { client: remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}` } : {}),
    ...(request.headers.traceparent ? { trace: String(request.headers.traceparent) } : {}),
    ...(hasBody ? { hasBody, bodyBytes: length > 0 ? length : -1 } : {}),
  });
  const end = (/** @type {import('../shared/protocol.js').BodyEnd} */ reason) => {
    if (!hasBody || body.ended) return;
    body.end(reason);
    record('requestBodyEnd', { id, bytes: body.bytes, captured: body.captured, ...(body.truncated ? { truncated: true } : {}), ...(body.redacted ? { redacted: true } : {}) });
  };
  if (hasBody) {
    // What the parser pushes is what the program will read; nothing is read for us.
    const { push } = request;
    request.push = function (/** @type {any} */ chunk, /** @type {any} */ encoding) {
      faults.run(() => {
        if (chunk === null) end('complete');
        else body.write(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
      });
      return push.call(this, chunk, encoding);
    };
  }
  response.once('close', () => faults.run(() => {
    if (a.ended) return;
    a.ended = true;
    end(request.complete ? 'complete' : 'aborted');
    const whole = response.writableFinished;
    if (!a.told && !response.headersSent) {
      record('error', { id, text: 'the client left before it was answered', canceled: true });
      return;
    }
    tell(o, a, response);
    const sent = a.response;
    sent?.end(whole ? 'complete' : 'aborted');
    record('end', {
      id, bytes: sent?.bytes ?? 0, captured: sent?.captured ?? 0, ...(sent?.truncated ? { truncated: true } : {}), ...(sent?.redacted ? { redacted: true } : {}),
      ...(whole ? {} : { error: 'the connection ended before the answer did' }),
    });
  }));
  return a;
}

/**
 * Tells the head of an answer once it is on its way.
 * @param {NetOptions} o
 * @param {Answering} a
 * @param {any} response
 */
function tell(o, a, response) {
  if (a.told || !response.headersSent) return;
  a.told = true;
  /** @type {[string, string][]} */
  const headers = head(response._header) ?? Object.entries(response.getHeaders()).flatMap(([k, v]) => (Array.isArray(v) ? v : [v]).map(x => /** @type {[string, string]} */ ([k, String(x)])));
  const { mimeType, charset } = parseType(headers.find(([k]) => k.toLowerCase() === 'content-type')?.[1] ?? '');
  const hasBody = response.req?.method !== 'HEAD' && response.statusCode !== 204 && response.statusCode !== 304;
  o.record('response', {
    id: a.id, status: response.statusCode, statusText: response.statusMessage ?? '', mimeType, hasBody, protocol: `http/${response.req?.httpVersion ?? '1.1'}`, headers, ...(charset ? { charset } : {}),
  });
  if (hasBody) a.response = captureBody(o, a.id, 'res', mimeType, { encoded: bodyType(headers, undefined).encoded });
}

/**
 * The header lines as they went out, with those that Node adds itself.
 * @param {unknown} text
 * @returns {[string, string][] | undefined}
 */
function head(text) {
  if (typeof text !== 'string') return undefined;
  return text.split('\r\n').slice(1).filter(Boolean).map(line => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
}
