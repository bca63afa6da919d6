import { callSite } from './stack.js';
import { messageOf } from './read.js';
import { captureBody, requestLimit } from './checked.js';
import { bodyType, readHeaders, readRequest, readRequestBody, parseType } from './request.js';
import { Observation, Passage, isAbort, readAlong } from './response.js';

/** @typedef {import('./patch.js').Patches} Patches */
/** @typedef {import('./faults.js').Faults} Faults */
/** @typedef {import('./protocol.js').Limits} Limits */

/** How long a page has to begin reading a body before its request counts as over, in milliseconds. */
const UNREAD = 5000;

/** The methods of a response that read all of it. */
const READERS = ['text', 'json', 'arrayBuffer', 'blob', 'bytes', 'formData'];

/**
 * What every capture of network traffic needs.
 * @typedef {object} NetOptions
 * @property {any} scope the global object, which has what is captured
 * @property {Patches} patches
 * @property {Faults} faults
 * @property {() => string} id a fresh id for a request
 * @property {(topic: string, data: object, t?: number) => void} record t is on the page's clock; default now
 * @property {(m: import('./protocol.js').BodyMessage) => boolean} sendBody
 * @property {() => Limits} limits
 * @property {import('./redact.js').Redactor} [redact] the rules for what must not be told
 * @property {() => number} now
 * @property {() => string} base the address that relative addresses belong to
 * @property {(f: () => void, ms: number) => unknown} setTimer
 * @property {(timer: any) => void} clearTimer
 * @property {Set<string>} [streams] takes the addresses of event streams
 */

/**
 * Records every fetch that the page makes. The page gets its own Response, when
 * it would without us. A body is seen while the page reads it: what the page
 * does not read is not pulled, and what it cancels is canceled.
 * @param {NetOptions} o
 */
export function captureFetch(o) {
  const capture = new FetchCapture(o);
  o.patches.method(o.scope, 'fetch', original => ({
    /** @this {unknown} @param {unknown[]} args */
    fetch(...args) {
      return capture.call(original, this ?? o.scope, args);
    },
  }).fetch);
  if (o.scope.Response) capture.patchResponse(o.scope.Response.prototype);
}

/**
 * Tells the body of a request, of which undefined means that it cannot be had.
 * @param {NetOptions} o
 * @param {string} id
 * @param {{bytes: Uint8Array | Promise<Uint8Array>, total: number} | undefined} body
 * @param {{type: string, encoded: boolean}} type
 */
export function sendRequestBody(o, id, body, { type, encoded }) {
  const { record, faults } = o;
  const sink = captureBody(o, id, 'req', type, { encoded });
  const finish = (/** @type {Uint8Array} */ bytes) => {
    sink.write(bytes);
    sink.end(body ? 'complete' : 'truncated', body?.total ?? 0);
    const total = body?.total ?? 0;
    record('requestBodyEnd', { id, bytes: total, captured: sink.captured, ...(!body || sink.truncated ? { truncated: true } : {}), ...(sink.redacted ? { redacted: true } : {}) });
  };
  if (body?.bytes instanceof Promise) body.bytes.then(b => faults.run(() => finish(b)), e => faults.add(e));
  else finish(body?.bytes ?? new Uint8Array());
}

class FetchCapture {
  /** @param {NetOptions} o */
  constructor(o) {
    this.o = o;
    /** @type {WeakMap<object, {seen: Observation, passage?: Passage}>} */
    this.watched = new WeakMap();
    const proto = o.scope.Response?.prototype;
    this.nativeBody = Object.getOwnPropertyDescriptor(proto ?? {}, 'body')?.get;
    this.nativeClone = proto?.clone;
  }

  /**
   * @param {Function} original
   * @param {unknown} self
   * @param {unknown[]} args
   */
  call(original, self, args) {
    const { patches, faults } = this.o;
    if (!patches.active) return Reflect.apply(original, self, args);
    const call = faults.run(() => this.start(args));
    let promise;
    try {
      promise = Reflect.apply(original, self, args);
    } catch (e) {
      faults.run(() => call && this.failed(call, e));
      throw e;
    }
    if (!call || typeof promise?.then !== 'function') return promise;
    // The page gets the derived promise, so that a rejection that it does not handle stays unhandled.
    return promise.then(
      (/** @type {Response} */ response) => {
        faults.run(() => this.responded(call, response));
        return response;
      },
      (/** @type {unknown} */ e) => {
        faults.run(() => this.failed(call, e));
        throw e;
      },
    );
  }

  /**
   * @param {unknown[]} args
   */
  start([input, init]) {
    const { record } = this.o;
    const documentURL = this.o.base();
    const info = readRequest(input, init, documentURL);
    const id = this.o.id();
    const body = info.hasBody ? readRequestBody(info.body, requestLimit(this.o)) : undefined;
    record('start', {
      id, method: info.method, url: info.url, headers: info.headers, type: 'fetch', documentURL, stack: callSite(),
      ...(info.hasBody ? { hasBody: true, bodyBytes: body ? body.total : -1 } : {}),
    });
    if (info.hasBody) sendRequestBody(this.o, id, body, bodyType(info.headers, info.body));
    return { id, signal: info.signal, url: info.url };
  }

  /**
   * @param {{id: string, signal: AbortSignal | undefined}} call
   * @param {unknown} error
   */
  failed(call, error) {
    const canceled = isAbort(error, call.signal);
    this.o.record('error', { id: call.id, text: messageOf(error), ...(canceled ? { canceled: true } : {}) });
  }

  /**
   * @param {{id: string, signal: AbortSignal | undefined, url: string}} call
   * @param {Response} response
   */
  responded(call, response) {
    const { record, now, setTimer, clearTimer, faults } = this.o;
    const { mimeType, charset } = parseType(response.headers.get('content-type') ?? '');
    const hasBody = Boolean(this.nativeBody?.call(response));
    record('response', {
      id: call.id, status: response.status, statusText: response.statusText, headers: readHeaders(response.headers), mimeType, hasBody,
      ...(charset ? { charset } : {}),
      ...(response.url && response.url !== call.url ? { url: response.url } : {}),
    });
    const events = mimeType === 'text/event-stream';
    const body = captureBody(this.o, call.id, 'res', mimeType, { events });
    /** @type {unknown} */
    let timer;
    const seen = new Observation({
      id: call.id, body, record, now, events, signal: call.signal,
      done: () => clearTimer(timer),
    });
    if (!hasBody) {
      seen.end();
      return;
    }
    this.watched.set(response, { seen });
    // Nobody knows when the rest came. That we waited is nothing that the request took.
    const came = now();
    timer = setTimer(() => faults.run(() => {
      if (!seen.begun) seen.end({ truncated: true, at: came });
    }), UNREAD);
    call.signal?.addEventListener('abort', () => faults.run(() => {
      if (!seen.begun) seen.end({ canceled: true, truncated: true });
    }), { once: true });
  }

  /** @param {any} proto Response.prototype */
  patchResponse(proto) {
    const { patches } = this.o;
    for (const name of READERS) {
      patches.method(proto, name, original => {
        const capture = this;
        return {
          /** @this {any} @param {unknown[]} args */
          [name](...args) {
            if (patches.active) capture.readAll(this);
            return Reflect.apply(original, this, args);
          },
        }[name];
      });
    }
    const capture = this;
    patches.method(proto, 'clone', original => ({
      /** @this {any} @param {unknown[]} args */
      clone(...args) {
        return capture.cloned(this, original, args);
      },
    }).clone);
    patches.getter(proto, 'body', original => function () {
      const stream = Reflect.apply(original, this, []);
      return patches.active ? capture.opened(this, stream) : stream;
    });
  }

  /**
   * The page is about to read all of a response.
   * @param {any} response
   */
  readAll(response) {
    this.o.faults.run(() => {
      const w = this.watched.get(response);
      if (!w) return;
      if (w.passage?.stream.locked) {
        // Without us the body would be locked, and what the page does would be refused.
        w.passage.lock();
        return;
      }
      if (w.seen.begun || w.seen.ended || response.bodyUsed) return;
      w.seen.begun = true;
      const copy = this.nativeBody?.call(this.nativeClone.call(response));
      if (copy) readAlong(copy, w.seen).catch(e => this.o.faults.add(e));
    });
  }

  /**
   * The page asks for the stream of a response.
   * @param {any} response
   * @param {any} stream
   */
  opened(response, stream) {
    const { faults } = this.o;
    return faults.run(() => {
      const w = stream ? this.watched.get(response) : undefined;
      if (!w) return stream;
      if (w.passage) return w.passage.stream;
      // Somebody else reads it already, or the page reads its clone.
      if (stream.locked || w.seen.begun || w.seen.ended) return stream;
      w.passage = new Passage(stream, w.seen, f => {
        w.seen.begun = true;
        faults.run(f);
      });
      return w.passage.stream;
    }) ?? stream;
  }

  /**
   * The page clones a response. The two share one observation: whichever is
   * read first is the one that is seen.
   * @param {any} response
   * @param {Function} original
   * @param {unknown[]} args
   */
  cloned(response, original, args) {
    const w = this.o.patches.active ? this.watched.get(response) : undefined;
    if (w?.passage?.stream.locked) this.o.faults.run(() => w.passage?.lock());
    const copy = Reflect.apply(original, response, args);
    if (w) {
      // Cloning gives the original a new stream; the passage led to the old one.
      w.passage = undefined;
      this.watched.set(copy, { seen: w.seen });
    }
    return copy;
  }
}
