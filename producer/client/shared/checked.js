import { BodyCapture } from './body.js';
import { toBase64 } from './base64.js';

/** @typedef {import('./redact.js').Redactor} Redactor */
/** @typedef {import('./fetch.js').NetOptions} NetOptions */

/** How much of one body, and of all of them, waits to be checked, in bytes: a check of more would be felt. */
export const MAX_CHECKED = 1 << 20;
const MAX_CHECKING = 16 << 20;

/** How many bytes of all bodies wait now. */
let checking = 0;

/**
 * Begins the capture of one body, as the rules want it.
 * @param {NetOptions} o
 * @param {string} id the request's
 * @param {'req' | 'res'} dir
 * @param {string} contentType
 * @param {{encoded?: boolean, events?: boolean}} [how] whether the bytes have a content encoding, or are an event stream
 * @returns {BodyCapture}
 */
export function captureBody({ redact, sendBody, limits }, id, dir, contentType, { encoded, events } = {}) {
  const { requestBodyBytes, responseBodyBytes, bodyChunkBytes } = limits();
  const limit = dir === 'req' ? requestBodyBytes : responseBodyBytes;
  if (!redact?.concerns(contentType)) return new BodyCapture(sendBody, id, dir, limit, bodyChunkBytes);
  const check = (/** @type {Uint8Array} */ bytes) => redact.body(contentType, Boolean(encoded), bytes);
  return new CheckedBody(new BodyCapture(sendBody, id, dir, limit, bodyChunkBytes), check, Boolean(encoded || events));
}

/**
 * How much of a request body has to be read, so that it can be told.
 * @param {NetOptions} o
 * @returns {number} bytes
 */
export function requestLimit({ redact, limits }) {
  return redact?.inBodies ? MAX_CHECKED : limits().requestBodyBytes;
}

/**
 * Keeps a body until all of it is known, and then tells what the rules leave of
 * it. One that is too large, or that ended early, is withheld: a secret may be
 * in the part that is missing, or go across the cut.
 */
class CheckedBody extends BodyCapture {
  /**
   * @param {BodyCapture} sink
   * @param {(bytes: Uint8Array) => Uint8Array | undefined} check
   * @param {boolean} withheld whether nothing of it can be told anyway
   */
  constructor(sink, check, withheld) {
    super(sink.send, sink.request, sink.dir, sink.limit, sink.chunk);
    this.sink = sink;
    this.check = check;
    this.withheld = withheld;
    /** @type {Uint8Array[]} */
    this.kept = [];
    this.size = 0;
  }

  get full() {
    return this.withheld;
  }

  get truncated() {
    return this.withheld ? this.bytes > 0 : this.sink.truncated;
  }

  /** @param {Uint8Array} bytes */
  write(bytes) {
    if (this.ended) return;
    this.bytes += bytes.length;
    if (this.withheld) return;
    if (this.size + bytes.length > MAX_CHECKED || checking + bytes.length > MAX_CHECKING) {
      this.withhold();
      return;
    }
    this.kept.push(bytes.slice());
    this.size += bytes.length;
    checking += bytes.length;
  }

  /** Lets go of what waits. */
  forget() {
    checking -= this.size;
    this.size = 0;
    this.kept = [];
  }

  withhold() {
    this.forget();
    this.withheld = true;
  }

  /**
   * @param {import('./protocol.js').BodyEnd} reason
   * @param {number} [total]
   */
  end(reason, total = this.bytes) {
    if (this.ended) return;
    this.ended = true;
    const whole = this.withheld || reason !== 'complete' || this.size < total ? undefined : joined(this.kept, this.size);
    this.forget();
    const out = whole && this.check(whole);
    if (!out) {
      this.withheld = true;
      this.redacted = total > 0;
      this.sink.end(total > 0 || reason === 'complete' ? 'truncated' : reason, total);
      return;
    }
    this.redacted = out !== whole;
    this.sink.write(out);
    this.sink.end(reason);
    this.captured = this.sink.captured;
  }
}

/**
 * @param {Uint8Array[]} parts
 * @param {number} size
 * @returns {Uint8Array}
 */
function joined(parts, size) {
  if (parts.length === 1) return parts[0];
  const out = new Uint8Array(size);
  let at = 0;
  for (const p of parts) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}

/**
 * The data of a record of a request, as it may be told: without passwords in
 * addresses, and as the rules want it.
 * @param {any} data
 * @param {Redactor | undefined} redact
 * @returns {any}
 */
export function tellable(data, redact) {
  const out = { ...data };
  for (const key of ['url', 'documentURL']) if (out[key]) out[key] = tellableURL(out[key], redact);
  for (const key of ['text', 'error']) if (out[key]) out[key] = tellableError(out[key], redact);
  if (!redact) return out;
  if (out.statusText) out.statusText = redact.text(out.statusText);
  if (out.headers) out.headers = out.headers.map((/** @type {[string, string]} */ [k, v]) => [k, redact.header(k, v)]);
  if (typeof out.data !== 'string') return out;
  const cut = out.bytes !== undefined;
  if (out.base64) out.data = toBase64(redact.binary(Uint8Array.from(atob(out.data), c => c.charCodeAt(0)), cut));
  else out.data = redact.message(out.data, cut);
  if (out.eventId) out.eventId = redact.text(out.eventId);
  return out;
}

/**
 * @param {string} url
 * @param {Redactor | undefined} redact
 * @returns {string}
 */
export function tellableURL(url, redact) {
  if (url.includes('@')) url = url.replace(/^([a-z][a-z0-9+.-]*:\/\/[^/?#@:]*):[^/?#]*@/i, '$1:xxxxx@');
  return redact ? redact.url(url) : url;
}

/**
 * Errors quote the address that they are about, as the page wrote it.
 * @param {string} text
 * @param {Redactor | undefined} redact
 * @returns {string}
 */
function tellableError(text, redact) {
  if (text.includes('@')) text = text.replace(/\b([a-z][a-z0-9+.-]*:\/\/[^/?#@:\s]*):[^/?#\s]*@/gi, '$1:xxxxx@');
  if (!redact) return text;
  return redact.text(text.replace(/[^\s"'<>]+/g, word => /[?#].*=/.test(word) ? redact.url(word) : word));
}
