import { toBase64 } from './base64.js';

/** @typedef {import('./protocol.js').BodyMessage} BodyMessage */
/** @typedef {import('./protocol.js').BodyEnd} BodyEnd */

/**
 * The capture of one body: its first bytes up to a limit, in pieces, and its end.
 */
export class BodyCapture {
  /**
   * @param {(m: BodyMessage) => boolean} send reports false when a piece was not kept
   * @param {string} request
   * @param {'req' | 'res'} dir
   * @param {number} limit bytes
   * @param {number} chunk bytes of one piece
   */
  constructor(send, request, dir, limit, chunk) {
    this.send = send;
    this.request = request;
    this.dir = dir;
    this.limit = limit;
    this.chunk = chunk;
    /** How many bytes passed, and how many of them were kept. */
    this.bytes = 0;
    this.captured = 0;
    this.ended = false;
    this.broken = false;
    /** Whether rules changed or withheld what is told. */
    this.redacted = false;
  }

  /** @returns {boolean} whether more bytes would not be kept */
  get full() {
    return this.broken || this.captured >= this.limit;
  }

  /** @returns {boolean} whether less was kept than passed */
  get truncated() {
    return this.captured < this.bytes;
  }

  /**
   * Takes bytes that passed. They are copied before it returns.
   * @param {Uint8Array} bytes
   */
  write(bytes) {
    if (this.ended) return;
    this.bytes += bytes.length;
    for (let at = 0; at < bytes.length && !this.full;) {
      const n = Math.min(this.chunk, bytes.length - at, this.limit - this.captured);
      const data = toBase64(bytes.subarray(at, at + n));
      if (!this.send({ type: 'body', request: this.request, dir: this.dir, offset: this.captured, data })) {
        this.broken = true;
        return;
      }
      this.captured += n;
      at += n;
    }
  }

  /**
   * Ends the body, once.
   * @param {BodyEnd} reason
   * @param {number} [total] the size of the whole body, if more is known than what passed
   */
  end(reason, total = this.bytes) {
    if (this.ended) return;
    this.ended = true;
    const why = reason === 'complete' && this.captured < total ? 'truncated' : reason;
    this.send({ type: 'body', request: this.request, dir: this.dir, offset: this.captured, end: why, total });
  }
}
