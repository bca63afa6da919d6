import { toBase64 } from './base64.js';
import { cut } from './text.js';
import { callSite } from './stack.js';

/** @typedef {import('./fetch.js').NetOptions} NetOptions */

/** How much of one message is kept, in UTF-16 units or bytes. */
const MAX_MESSAGE = 64 << 10;

/**
 * Records every WebSocket with its messages in both directions. The page's own
 * calls run first and unchanged.
 * @param {NetOptions} o
 */
export function captureWebSocket(o) {
  const { scope, patches, faults } = o;
  /** @type {WeakMap<object, Watched>} */
  const watched = new WeakMap();
  const known = patches.construct(scope, 'WebSocket', (ws, args) => faults.run(() => watched.set(ws, new Watched(o, ws, args[1]))));
  if (!known) return;
  const proto = scope.WebSocket.prototype;
  patches.method(proto, 'send', original => ({
    /** @this {any} @param {unknown[]} args */
    send(...args) {
      const result = Reflect.apply(original, this, args);
      // What is sent after the close goes nowhere.
      if (patches.active && this.readyState === 1) faults.run(() => watched.get(this)?.message(args[0], true));
      return result;
    },
  }).send);
}

class Watched {
  /**
   * @param {NetOptions} o
   * @param {any} ws
   * @param {unknown} protocols
   */
  constructor(o, ws, protocols) {
    this.o = o;
    this.id = o.id();
    this.answered = false;
    /** @type {Promise<void> | undefined} what messages wait for, so that they stay in order */
    this.pending = undefined;
    this.bytes = 0;
    const offered = (Array.isArray(protocols) ? protocols : protocols === undefined ? [] : [protocols]).map(String);
    o.record('start', {
      id: this.id, method: 'GET', url: ws.url, type: 'websocket', documentURL: o.base(), stack: callSite(),
      headers: offered.length > 0 ? [['Sec-WebSocket-Protocol', offered.join(', ')]] : [],
    });
    const { faults, patches } = o;
    const on = (/** @type {string} */ type, /** @type {(e: any) => void} */ f) => ws.addEventListener(type, (/** @type {Event} */ e) => {
      if (patches.active) faults.run(() => f(e));
    });
    on('open', () => this.opened(ws));
    on('message', e => this.message(e.data, false));
    on('close', e => this.later(() => this.closed(e)));
  }

  /** @param {any} ws */
  opened(ws) {
    this.answered = true;
    const headers = [];
    if (ws.protocol) headers.push(['Sec-WebSocket-Protocol', ws.protocol]);
    if (ws.extensions) headers.push(['Sec-WebSocket-Extensions', ws.extensions]);
    this.o.record('response', { id: this.id, status: 101, statusText: 'Switching Protocols', headers });
  }

  /**
   * Runs f after the messages that came before.
   * @param {() => void} f
   */
  later(f) {
    if (!this.pending) {
      f();
      return;
    }
    const mine = this.pending.then(() => void this.o.faults.run(f));
    this.pending = mine;
    this.settled(mine);
  }

  /** @param {Promise<void>} mine */
  settled(mine) {
    mine.then(() => {
      if (this.pending === mine) this.pending = undefined;
    });
  }

  /**
   * @param {unknown} data
   * @param {boolean} sent
   */
  message(data, sent) {
    const common = { id: this.id, ...(sent ? { sent } : {}) };
    if (typeof data === 'string') {
      const kept = cut(data, MAX_MESSAGE);
      const size = data.length > MAX_MESSAGE ? { bytes: data.length } : {};
      this.bytes += data.length;
      this.later(() => this.o.record('message', { ...common, opcode: 1, data: kept, ...size }));
      return;
    }
    if (typeof Blob !== 'undefined' && data instanceof Blob) {
      const { size } = data;
      const before = this.pending;
      const mine = data.slice(0, MAX_MESSAGE).arrayBuffer()
        .then(async b => {
          await before;
          this.o.faults.run(() => this.binary(common, new Uint8Array(b), size));
        }, e => this.o.faults.add(e));
      this.pending = mine;
      this.settled(mine);
      return;
    }
    const view = data instanceof ArrayBuffer ? new Uint8Array(data) : ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : undefined;
    if (!view) {
      this.message(String(data), sent);
      return;
    }
    const kept = view.slice(0, MAX_MESSAGE);
    this.later(() => this.binary(common, kept, view.length));
  }

  /**
   * @param {object} common
   * @param {Uint8Array} bytes
   * @param {number} size
   */
  binary(common, bytes, size) {
    this.bytes += size;
    this.o.record('message', { ...common, opcode: 2, data: toBase64(bytes), base64: true, ...(size > bytes.length ? { bytes: size } : {}) });
  }

  /** @param {{code: number, reason: string, wasClean: boolean}} e */
  closed(e) {
    if (!this.answered) {
      this.o.record('error', { id: this.id, text: `the connection could not be opened (code ${e.code})` });
      return;
    }
    this.o.record('message', { id: this.id, opcode: 8, code: e.code, data: cut(String(e.reason), 200) });
    this.o.record('end', { id: this.id, bytes: this.bytes, captured: 0, ...(e.wasClean ? {} : { error: `the connection broke (code ${e.code})` }) });
  }
}
