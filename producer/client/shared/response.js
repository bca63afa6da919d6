import { EventStreamParser } from './sse.js';
import { messageOf } from './read.js';

/** @typedef {import('./body.js').BodyCapture} BodyCapture */

/** How often at most, in milliseconds, it is told that bytes came. */
const DATA_EVERY = 100;

/**
 * One response whose body is watched while the page reads it. It ends once.
 */
export class Observation {
  /**
   * @param {object} o
   * @param {string} o.id
   * @param {BodyCapture} o.body
   * @param {(topic: string, data: object, t?: number) => void} o.record
   * @param {() => number} o.now
   * @param {boolean} o.events whether the body is a stream of server-sent events
   * @param {AbortSignal | undefined} o.signal
   * @param {() => void} o.done called when it has ended
   */
  constructor({ id, body, record, now, events, signal, done }) {
    this.id = id;
    this.body = body;
    this.record = record;
    this.now = now;
    this.signal = signal;
    this.done = done;
    this.parser = events ? new EventStreamParser(e => record('message', { id, event: e.event, eventId: e.id, data: e.data, ...(e.size > e.data.length ? { bytes: e.size } : {}) })) : undefined;
    /** Whether the page began to read. */
    this.begun = false;
    this.ended = false;
    this.unreported = 0;
    this.reported = -Infinity;
  }

  /**
   * Takes bytes that the page read. They are copied before it returns.
   * @param {Uint8Array} bytes
   */
  chunk(bytes) {
    if (this.ended) return;
    this.body.write(bytes);
    this.unreported += bytes.length;
    if (this.parser || this.now() - this.reported >= DATA_EVERY) this.report();
    this.parser?.write(bytes);
  }

  report() {
    if (this.unreported === 0) return;
    this.record('dataReceived', { id: this.id, bytes: this.unreported });
    this.unreported = 0;
    this.reported = this.now();
  }

  /**
   * Ends it.
   * @param {{error?: unknown, canceled?: boolean, truncated?: boolean, at?: number}} how at is when it ended, on the page's clock; default now
   */
  end({ error, canceled, truncated, at } = {}) {
    if (this.ended) return;
    this.ended = true;
    this.report();
    const aborted = canceled || isAbort(error, this.signal);
    this.body.end(error !== undefined || aborted ? 'aborted' : truncated ? 'truncated' : 'complete');
    const cut = truncated || this.body.truncated;
    this.record('end', {
      id: this.id, bytes: this.body.bytes, captured: this.body.captured,
      ...(cut ? { truncated: true } : {}), ...(this.body.redacted ? { redacted: true } : {}),
      ...(error !== undefined ? { error: messageOf(error) } : {}),
      ...(aborted ? { canceled: true } : {}),
    }, at);
    this.done();
  }
}

/**
 * @param {unknown} error
 * @param {AbortSignal | undefined} signal
 * @returns {boolean} whether the page gave up itself
 */
export function isAbort(error, signal) {
  if (error === undefined) return false;
  return Boolean(signal?.aborted) || error !== null && typeof error === 'object' && /** @type {any} */ (error).name === 'AbortError';
}

/**
 * Reads a copy of a response beside the page, which reads the whole response
 * itself right now, so that the copy holds nothing back. It stops at the limit.
 * @param {ReadableStream<Uint8Array>} copy
 * @param {Observation} seen
 */
export async function readAlong(copy, seen) {
  const reader = copy.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        seen.end();
        return;
      }
      seen.chunk(value);
      // Events are told also of a stream whose bytes are not kept any more.
      if (seen.body.full && !seen.parser) {
        seen.end({ truncated: true });
        await reader.cancel();
        return;
      }
    }
  } catch (error) {
    seen.end({ error });
  }
}

/**
 * A stream that the page reads in place of a response's own. It pulls only when
 * the page does, locks the original only then, and gives up when the page does.
 */
export class Passage {
  /**
   * @param {ReadableStream<Uint8Array>} source
   * @param {Observation} seen
   * @param {(f: () => void) => void} quietly runs what must not disturb the page
   */
  constructor(source, seen, quietly) {
    this.source = source;
    this.seen = seen;
    this.quietly = quietly;
    /** @type {ReadableStreamDefaultReader<Uint8Array> | undefined} */
    this.reader = undefined;
    this.stream = new ReadableStream(/** @type {UnderlyingByteSource} */ ({
      type: 'bytes',
      pull: c => this.pull(c),
      cancel: reason => this.cancel(reason),
    }), { highWaterMark: 0 });
  }

  /** Locks the original, as the page's reading of it would. */
  lock() {
    this.reader ??= this.source.getReader();
    return this.reader;
  }

  /** @param {ReadableByteStreamController} c */
  async pull(c) {
    const reader = this.lock();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) {
          this.quietly(() => this.seen.end());
          c.close();
          c.byobRequest?.respond(0);
          return;
        }
        if (value.byteLength === 0) continue;
        this.quietly(() => this.seen.chunk(value));
        c.enqueue(/** @type {Uint8Array<ArrayBuffer>} */ (value));
        return;
      }
    } catch (error) {
      this.quietly(() => this.seen.end({ error }));
      throw error;
    }
  }

  /** @param {unknown} reason */
  cancel(reason) {
    this.quietly(() => this.seen.end({ canceled: true, truncated: true }));
    return this.lock().cancel(reason);
  }
}
