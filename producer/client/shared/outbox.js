import { Queue } from './queue.js';

/** @typedef {import('./protocol.js').Plane} Plane */
/** @typedef {import('./protocol.js').UpdateMessage} UpdateMessage */

/** @type {readonly Plane[]} */
const PLANES = ['tree', 'net', 'console', 'event'];

const QUEUE_RECORDS = 8192;
const QUEUE_SIZE = 4 << 20;
const BODY_SIZE = 16 << 20;
const BODY_COUNT = 20000;
/** How large one message gets before another is begun. */
const MESSAGE_SIZE = 128 << 10;
const MESSAGE_RECORDS = 512;
/** How much may be unacknowledged. */
const WINDOW_MESSAGES = 16;
const WINDOW_SIZE = 1 << 20;

/**
 * A message on its way: its text without the number, and its number.
 * @typedef {{n: number, plane: string, rest: string, records: number}} Flight
 */

/**
 * What waits to be sent, what was sent and not acknowledged, and the numbers of
 * both. It is pure: time is told to it, and it sends nothing itself.
 *
 * Planes take turns, so that a flood of one does not hold up the others. What
 * is queued is bounded; what is dropped is counted in the next message of its plane.
 */
export class Outbox {
  constructor() {
    /** @type {Map<Plane, Queue>} */
    this.planes = new Map(PLANES.map(p => [p, new Queue(QUEUE_RECORDS, QUEUE_SIZE)]));
    // A tree is bounded by its own limits, and losing a part of it loses all.
    this.planes.set('tree', new Queue(Infinity, Infinity));
    this.bodies = new Queue(BODY_COUNT, Infinity);
    /** @type {Omit<UpdateMessage, 'type'> | undefined} */
    this.update = undefined;
    /** @type {Flight[]} */
    this.flying = [];
    /** How many of flying were sent on this connection. */
    this.sent = 0;
    this.flyingSize = 0;
    this.n = 0;
    this.turn = 0;
    this.rate = 20000;
    this.tokens = this.rate;
    this.refilled = 0;
  }

  /**
   * Enqueues a record.
   * @param {Plane} plane
   * @param {number} t milliseconds on the page's clock
   * @param {string} topic
   * @param {string} data JSON
   */
  push(plane, t, topic, data) {
    this.planes.get(plane)?.push(`{"t":${round(t)},"topic":${JSON.stringify(topic)},"data":${data}}`);
  }

  /**
   * Enqueues a piece of a body. It reports false, and keeps nothing, when the
   * queue is full. The end of a body always fits, if need be in the place of the
   * oldest piece, whose body the server then knows to be cut.
   * @param {import('./protocol.js').BodyMessage} m
   * @returns {boolean}
   */
  pushBody(m) {
    if (m.end === undefined && this.bodies.size > BODY_SIZE) return false;
    this.bodies.push(JSON.stringify(m).slice('{"type":"body"'.length));
    return true;
  }

  /**
   * Tells of changes of the page; those that wait are merged.
   * @param {Omit<UpdateMessage, 'type'>} u
   */
  pushUpdate(u) {
    this.update = { ...this.update, ...u };
  }

  /** @returns {boolean} whether nothing of the tree waits to be sent */
  get treeIdle() {
    return this.planes.get('tree')?.length === 0;
  }

  /** @returns {number} how many records were dropped ever */
  get lost() {
    let n = 0;
    for (const q of this.planes.values()) n += q.lost;
    return n;
  }

  /** @returns {boolean} whether anything waits or is unacknowledged */
  get idle() {
    if (this.flying.length > 0 || this.update || this.bodies.length > 0) return false;
    for (const q of this.planes.values()) if (q.length > 0 || q.dropped > 0) return false;
    return true;
  }

  /**
   * Returns the text of the next message to send, or undefined when there is
   * none, or the window is full, or the rate is used up.
   * @param {number} now milliseconds
   * @param {boolean} [last] the page leaves: the window does not matter any more
   * @returns {string | undefined}
   */
  next(now, last) {
    if (this.sent < this.flying.length) return text(this.flying[this.sent++]);
    if (!last && (this.flying.length >= WINDOW_MESSAGES || this.flyingSize >= WINDOW_SIZE)) return undefined;
    if (!last && !this.affordable(now)) return undefined;
    const f = this.compose();
    if (!f) return undefined;
    this.tokens -= f.records;
    this.flying.push(f);
    this.flyingSize += f.rest.length;
    this.sent++;
    return text(f);
  }

  /**
   * @param {number} now
   * @returns {boolean} whether another message may be begun
   */
  affordable(now) {
    this.tokens = Math.min(this.rate, this.tokens + Math.max(0, now - this.refilled) * this.rate / 1000);
    this.refilled = now;
    return this.tokens > 0;
  }

  /** @returns {Flight | undefined} */
  compose() {
    if (this.update) {
      const rest = JSON.stringify({ type: 'update', ...this.update }).slice('{"type":"update"'.length);
      this.update = undefined;
      return this.flight('update', rest, 1);
    }
    for (let i = 0; i <= PLANES.length; i++) {
      const at = (this.turn + i) % (PLANES.length + 1);
      const f = at === PLANES.length ? this.composeBody() : this.composeRecords(PLANES[at]);
      if (f) {
        this.turn = at + 1;
        return f;
      }
    }
    return undefined;
  }

  /** @returns {Flight | undefined} */
  composeBody() {
    const rest = this.bodies.shift();
    return rest === undefined ? undefined : this.flight('body', rest, 1);
  }

  /**
   * @param {Plane} plane
   * @returns {Flight | undefined}
   */
  composeRecords(plane) {
    const q = /** @type {Queue} */ (this.planes.get(plane));
    const dropped = q.takeDropped();
    if (q.length === 0 && dropped === 0) return undefined;
    const list = [];
    let size = 0;
    for (let t = q.peek(); t !== undefined && list.length < MESSAGE_RECORDS && (list.length === 0 || size + t.length <= MESSAGE_SIZE); t = q.peek()) {
      list.push(t);
      size += t.length;
      q.shift();
    }
    return this.flight(plane, `,"plane":"${plane}"${dropped ? `,"dropped":${dropped}` : ''},"records":[${list.join(',')}]}`, list.length);
  }

  /**
   * @param {string} plane
   * @param {string} rest
   * @param {number} records
   * @returns {Flight}
   */
  flight(plane, rest, records) {
    return { n: ++this.n, plane, rest, records };
  }

  /**
   * Forgets what the server has.
   * @param {number} n the number of the last message that it acknowledges
   */
  ack(n) {
    let k = 0;
    while (k < this.flying.length && this.flying[k].n <= n) this.flyingSize -= this.flying[k++].rest.length;
    this.flying.splice(0, k);
    this.sent = Math.max(0, this.sent - k);
  }

  /**
   * The session goes on, on a new connection: what the server does not have is sent again.
   * @param {number} last the number of the last message that the server has
   */
  resume(last) {
    this.ack(last);
    this.sent = 0;
    if (this.flying.length === 0) this.n = Math.max(this.n, last);
  }

  /**
   * A new session: numbers begin at 1. What the old one did not acknowledge is
   * sent again; trees are not, since the snapshot comes that they lead to.
   */
  restart() {
    this.clearTree();
    this.flying = this.flying.filter(f => f.plane !== 'tree');
    this.flyingSize = 0;
    this.n = 0;
    for (const f of this.flying) {
      f.n = ++this.n;
      this.flyingSize += f.rest.length;
    }
    this.sent = 0;
  }

  /** Forgets what waits of the tree. */
  clearTree() {
    this.planes.get('tree')?.clear();
  }

  /**
   * @param {number} perSecond how many records the server takes; a tenth is left as a reserve
   */
  setRate(perSecond) {
    this.rate = perSecond * 0.9;
  }
}

/**
 * @param {Flight} f
 * @returns {string}
 */
function text(f) {
  const type = f.plane === 'body' || f.plane === 'update' ? f.plane : 'records';
  return `{"type":"${type}","n":${f.n}${f.rest}`;
}

/**
 * Microseconds are enough, and more digits only cost bytes.
 * @param {number} t
 * @returns {number}
 */
function round(t) {
  return Number.isFinite(t) ? Math.round(t * 1000) / 1000 : 0;
}
