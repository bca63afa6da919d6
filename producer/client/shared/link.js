import { messageOf } from './read.js';
import { SUBPROTOCOL, TOKEN_PROTOCOL, DEFAULT_LIMITS, parseServerMessage } from './protocol.js';

/** @typedef {import('./protocol.js').ServerMessage} ServerMessage */
/** @typedef {import('./protocol.js').Hello} Hello */

/**
 * What a link needs of a WebSocket.
 * @typedef {object} Socket
 * @property {(text: string) => void} send
 * @property {() => void} close
 */

/**
 * @typedef {object} SocketEvents
 * @property {() => void} open
 * @property {(data: unknown) => void} message
 * @property {() => void} close called once, also when the socket never opened
 */

/**
 * @typedef {object} LinkOptions
 * @property {string} url
 * @property {string} token
 * @property {(url: string, protocols: string[], events: SocketEvents) => Socket} connect
 * @property {() => Hello} hello
 * @property {(m: ServerMessage) => void} message called for every message but pings
 * @property {() => void} down called when an admitted connection ended
 * @property {(reason: string) => void} refused called when the server does not want the page, for good
 * @property {() => number} now
 * @property {(f: () => void, ms: number) => unknown} setTimer
 * @property {(timer: any) => void} clearTimer
 * @property {() => number} [random]
 */

/** How long a socket may take to be welcomed, and a ping to be answered, in milliseconds. */
const PATIENCE = 10000;
/** How long the server may be silent before it is asked for a sign of life, in milliseconds. */
const SILENCE = 20000;
/** What a socket throws that no later attempt mends: an address or a token that cannot be one, or a page that must not connect. */
const FINAL = new Set(['SyntaxError', 'SecurityError', 'TypeError']);

/**
 * One connection to the ingest at a time, which comes back by itself: after 250
 * milliseconds at first, later after up to 5 seconds, with jitter. Events of a
 * socket that is not the current one any more are no-ops.
 */
export class Link {
  /** @param {LinkOptions} options */
  constructor(options) {
    this.o = options;
    this.limits = DEFAULT_LIMITS;
    /** @type {'stopped' | 'waiting' | 'connecting' | 'up'} */
    this.state = 'stopped';
    /** @type {Socket | undefined} */
    this.socket = undefined;
    /** How many attempts failed in a row. */
    this.failures = 0;
    /** @type {unknown} */
    this.timer = undefined;
    this.serial = 0;
    this.heard = 0;
    this.pinged = 0;
  }

  /** Begins to connect, and goes on until stop. */
  start() {
    if (this.state !== 'stopped') return;
    // A WebSocket takes what is no address for a path of the page's own server, and we would ask that for ever.
    if (/^[a-z][a-z0-9+.-]*:/i.test(this.o.url) && typeof this.o.token === 'string') this.attempt();
    else this.o.refused('start needs a url and a token, as in { url: "ws://127.0.0.1:9230/ingest", token: "…" }; natscope up prints them');
  }

  /** Closes the connection and makes no other. */
  stop() {
    this.drop();
    this.state = 'stopped';
  }

  /** Ends a wait for the next attempt early, because the network or the page came back. */
  nudge() {
    if (this.state !== 'waiting') return;
    this.failures = 0;
    this.attempt();
  }

  /**
   * Sends a text if the connection is admitted.
   * @param {string} text
   * @returns {boolean}
   */
  send(text) {
    if (this.state !== 'up' || !this.socket) return false;
    this.socket.send(text);
    return true;
  }

  attempt() {
    this.drop();
    const serial = this.serial;
    this.state = 'connecting';
    /** @param {() => void} f @returns {() => void} */
    const current = f => () => { if (serial === this.serial) f(); };
    try {
      this.socket = this.o.connect(this.o.url, [SUBPROTOCOL, TOKEN_PROTOCOL + this.o.token], {
        open: current(() => this.socket?.send(JSON.stringify(this.o.hello()))),
        message: data => { if (serial === this.serial) this.receive(data); },
        close: current(() => this.lost()),
      });
    } catch (e) {
      if (FINAL.has(/** @type {any} */ (e)?.name)) {
        this.stop();
        this.o.refused(messageOf(e));
      } else {
        this.lost();
      }
      return;
    }
    this.timer = this.o.setTimer(current(() => this.lost()), PATIENCE);
  }

  /** @param {unknown} data */
  receive(data) {
    const m = parseServerMessage(data);
    if (!m) return;
    this.heard = this.o.now();
    switch (m.type) {
      case 'welcome':
        this.limits = m.limits;
        this.state = 'up';
        this.failures = 0;
        this.watch();
        break;
      case 'ping':
        this.socket?.send('{"type":"pong"}');
        return;
      case 'rejected':
        if (!m.retry) {
          this.stop();
          this.o.refused(m.reason);
          return;
        }
        this.lost();
        return;
    }
    this.o.message(m);
  }

  /** Looks now and then whether the server still lives: a dead network closes no socket. */
  watch() {
    this.o.clearTimer(this.timer);
    const serial = this.serial;
    this.timer = this.o.setTimer(() => {
      if (serial !== this.serial) return;
      const now = this.o.now();
      if (this.pinged > this.heard && now - this.pinged >= PATIENCE) {
        this.lost();
        return;
      }
      if (now - this.heard >= SILENCE && this.pinged <= this.heard) {
        this.pinged = now;
        this.socket?.send('{"type":"ping"}');
      }
      this.watch();
    }, PATIENCE);
  }

  /** The connection is gone, or never came. */
  lost() {
    const was = this.state;
    this.drop();
    this.state = 'waiting';
    this.timer = this.o.setTimer(() => this.attempt(), this.delay());
    this.failures++;
    if (was === 'up') this.o.down();
  }

  /** @returns {number} milliseconds until the next attempt */
  delay() {
    const { reconnectMin, reconnectMax } = this.limits;
    const most = Math.min(reconnectMax, reconnectMin * 2 ** Math.min(this.failures, 20));
    return Math.max(reconnectMin, most * (0.5 + 0.5 * (this.o.random ?? Math.random)()));
  }

  /** Forgets the socket; its late events change nothing. */
  drop() {
    this.serial++;
    this.o.clearTimer(this.timer);
    const s = this.socket;
    this.socket = undefined;
    try {
      s?.close();
    } catch {
      // A socket that cannot be closed is closed already.
    }
  }
}
