import { cut } from './text.js';
import { callSite } from './stack.js';

/** @typedef {import('./fetch.js').NetOptions} NetOptions */

/** How much of one event is kept, in UTF-16 units. */
const MAX_EVENT = 64 << 10;

/** How many addresses of streams are kept, so that the browser's own note of them is known for the same. */
const MAX_STREAMS = 200;

/** How many kinds of events of one source are recorded. */
const MAX_TYPES = 200;

/**
 * Records every EventSource. Events with a name are seen once the page listens
 * to their name: nobody but a listener is told of them.
 * @param {NetOptions} o
 */
export function captureEventSource(o) {
  const { scope, patches, faults } = o;
  /** @type {WeakMap<object, Watched>} */
  const watched = new WeakMap();
  if (!patches.construct(scope, 'EventSource', es => faults.run(() => watched.set(es, new Watched(o, es))))) return;
  const proto = scope.EventSource.prototype;
  const key = 'addEventListener';
  patches.method(proto, key, original => ({
    /** @this {any} @param {unknown[]} args */
    [key](...args) {
      if (patches.active) faults.run(() => watched.get(this)?.listen(String(args[0]), original));
      return Reflect.apply(original, this, args);
    },
  }[key]));
  patches.method(proto, 'close', original => ({
    /** @this {any} @param {unknown[]} args */
    close(...args) {
      const result = Reflect.apply(original, this, args);
      if (patches.active) faults.run(() => watched.get(this)?.end({ canceled: true }));
      return result;
    },
  }).close);
}

class Watched {
  /**
   * @param {NetOptions} o
   * @param {any} es
   */
  constructor(o, es) {
    this.o = o;
    this.es = es;
    this.stack = callSite();
    this.lastID = '';
    this.bytes = 0;
    this.types = new Set(['open', 'error', 'message']);
    this.begin();
    const add = o.scope.EventTarget.prototype.addEventListener;
    this.on('open', () => this.opened(), add);
    this.on('message', e => this.event(e), add);
    this.on('error', () => this.failed(), add);
  }

  /** Each connection is a request, as it is for the server. */
  begin() {
    this.id = this.o.id();
    this.answered = false;
    this.ended = false;
    this.bytes = 0;
    const { streams } = this.o;
    if (streams && streams.size < MAX_STREAMS) streams.add(this.es.url);
    this.o.record('start', {
      id: this.id, method: 'GET', url: this.es.url, type: 'eventsource', documentURL: this.o.base(), stack: this.stack,
      headers: [['Accept', 'text/event-stream'], ...(this.lastID ? [['Last-Event-ID', this.lastID]] : [])],
    });
  }

  /**
   * @param {string} type
   * @param {(e: any) => void} f
   * @param {Function} add
   */
  on(type, f, add) {
    Reflect.apply(add, this.es, [type, (/** @type {Event} */ e) => {
      if (this.o.patches.active) this.o.faults.run(() => f(e));
    }]);
  }

  /**
   * The page listens to a kind of event.
   * @param {string} type
   * @param {Function} add
   */
  listen(type, add) {
    if (this.types.has(type) || this.types.size >= MAX_TYPES) return;
    this.types.add(type);
    this.on(type, e => this.event(e), add);
  }

  opened() {
    if (this.ended) this.begin();
    this.answered = true;
    this.o.record('response', { id: this.id, status: 200, statusText: '', headers: [['Content-Type', 'text/event-stream']], mimeType: 'text/event-stream', hasBody: true });
  }

  /** @param {MessageEvent} e */
  event(e) {
    if (this.ended || typeof e.data !== 'string') return;
    this.bytes += e.data.length;
    this.lastID = cut(e.lastEventId ?? '', 1000);
    this.o.record('message', { id: this.id, event: e.type, eventId: this.lastID, data: cut(e.data, MAX_EVENT), ...(e.data.length > MAX_EVENT ? { bytes: e.data.length } : {}) });
  }

  failed() {
    this.end({ error: this.es.readyState === 2 ? 'the server refused the stream, or it was closed' : 'the connection was lost' });
    // The browser opens the stream again.
    if (this.es.readyState === 0) this.begin();
  }

  /** @param {{error?: string, canceled?: boolean}} how */
  end({ error, canceled }) {
    if (this.ended) return;
    this.ended = true;
    if (this.answered) this.o.record('end', { id: this.id, bytes: this.bytes, captured: 0, truncated: this.bytes > 0, ...(error ? { error } : {}), ...(canceled ? { canceled } : {}) });
    else this.o.record('error', { id: this.id, text: error ?? 'canceled', ...(canceled ? { canceled } : {}) });
  }
}
