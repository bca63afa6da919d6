import { Faults } from './faults.js';
import { Outbox } from './outbox.js';
import { Questions } from './questions.js';
import { watchGuests } from './guests.js';
import { Link } from './link.js';
import { Tree } from './tree.js';
import { Patches } from './patch.js';
import { capture } from './capture.js';
import { exceptionJSON } from './exception.js';
import { losslessJSON } from './lossless.js';
import { messageOf } from './read.js';
import { claimIdentity, randomText, remember } from './identity.js';
import { isUnsupported } from './unsupported.js';
import { redactor } from './redact.js';
import { tellableURL } from './checked.js';
import { showAddresses } from './stack.js';
import { CAPABILITIES, LIBRARY, VERSION } from './protocol.js';

/** @typedef {import('./unsupported.js').Unsupported} Unsupported */
/** @typedef {import('./protocol.js').Plane} Plane */
/** @typedef {import('./tree.js').TreeNode} TreeNode */
/** @typedef {import('./live.js').Live} Live */

/** @typedef {import('./types.js').AnyTree} AnyTree */
/** @typedef {import('./types.js').Place} Place */
/** @typedef {import('./types.js').Environment} Environment */
/** @typedef {import('./types.js').Options} Options */
/** @typedef {import('./types.js').Component} Component */
/** @typedef {import('./types.js').ComponentOptions} ComponentOptions */

/**
 * How far apart a page that is shown sends, in milliseconds, but for what comes
 * after a pause: each message costs it as much as several console calls.
 */
const SEND_EVERY = 10;

/** How long a flush of the tree may take before the rest waits for the next one, in milliseconds. */
const FLUSH = 2;
/**
 * How much rest follows upon a flush, in times that it took: the tree takes half a
 * hundredth of the page's time while nobody looks, and a tenth while somebody does.
 */
const REST_ALONE = 200;
const REST_WATCHED = 10;
/** How long that rest may be, in milliseconds. */
const MAX_REST = 1000;

/** Which tree node a component stands for. Handles hold nothing of ours that a page could break. */
const nodes = /** @type {WeakMap<object, TreeNode>} */ (new WeakMap());

/**
 * One page, or process, as a source: it captures, queues and sends. Nothing
 * that goes wrong here reaches the page.
 */
export class Client {
  /**
   * @param {Environment} env
   * @param {Options} options
   */
  constructor(env, options) {
    this.env = env;
    this.options = options;
    this.faults = new Faults();
    /** The rules for what must not be told; a TypeError where they cannot work. */
    this.redact = redactor(options.redact);
    this.outbox = new Outbox();
    this.questions = new Questions({ send: text => this.link.send(text), setTimer: env.setTimer, clearTimer: env.clearTimer });
    this.patches = new Patches();
    this.realm = randomText(26);
    this.stopped = false;
    /** Whether the page went away, into a cache or for good. */
    this.away = false;
    /** @type {Set<(message: any) => void>} who hears what runespect panels elsewhere send */
    this.panels = new Set();
    this.pumping = false;
    this.flushing = false;
    /** When something was sent last. */
    this.drained = -Infinity;
    /** When the last flush ended, and how long it took. */
    this.flushed = -Infinity;
    this.spent = 0;
    /** @type {import('./identity.js').Claim | undefined} */
    this.claim = undefined;
    /** @type {(() => void)[]} */
    this.undos = [];
    /** @type {unknown} */
    this.timer = undefined;
    /** @type {Place | undefined} what the server knows of the place */
    this.told = undefined;
    // The page may patch its console after us; what we have to say goes to what was there before.
    this.warn = env.scope.console?.warn?.bind(env.scope.console) ?? (() => {});
    this.link = new Link({
      url: options.url,
      token: options.token,
      connect: env.connect,
      hello: () => this.hello(),
      message: m => this.faults.run(() => this.receive(m)),
      down: () => this.faults.run(() => this.down()),
      refused: reason => this.warn(`natscope: this page is not inspected: ${reason}`),
      now: env.now,
      setTimer: env.setTimer,
      clearTimer: env.clearTimer,
    });
    this.components = new Tree(() => this.link.limits);
    /** @type {AnyTree} what is shown: the components, or a Cordis runtime */
    this.tree = this.components;
    /** @type {Live | undefined} there is none before the first command */
    this.live = undefined;
    /** @type {Promise<Live> | undefined} */
    this.loading = undefined;
  }

  /**
   * Begins to capture at once, and to connect when the page is idle: its storage,
   * which is asked for its id, may keep it waiting for another process.
   */
  start() {
    this.faults.run(() => this.watch());
    this.env.whenIdle(() => this.faults.run(() => {
      if (this.stopped) return;
      this.keep(this.env.watchPlace(() => this.faults.run(() => this.placeChanged())));
      if (!this.away) this.connect().catch(e => this.faults.add(e));
    }));
  }

  watch() {
    const { env, faults } = this;
    if (this.redact) this.keep(showAddresses(url => tellableURL(url, this.redact)));
    faults.run(() => capture(this));
    this.keep(env.watchErrors(t => faults.run(() => this.record('console', 'exception', exceptionJSON(t, this.live?.keep([t.value]) ?? 0)))));
    if (this.options.components !== false) watchGuests(this);
    this.keep(env.watchLife({
      leave: () => faults.run(() => this.leave()),
      back: () => faults.run(() => this.back()),
      online: () => faults.run(() => this.link.nudge()),
    }));
  }

  /**
   * @param {import('./protocol.js').BodyMessage} m
   * @returns {boolean} whether it was kept
   */
  sendBody(m) {
    if (this.stopped) return false;
    const kept = this.outbox.pushBody(m);
    this.pump();
    return kept;
  }

  /** @param {(() => void) | Unsupported} undo */
  keep(undo) {
    if (!isUnsupported(undo)) this.undos.push(undo);
  }

  /** Claims an id and connects, unless the page left or stopped meanwhile. */
  async connect() {
    const claim = await claimIdentity(this.env.ground, this.claim?.id ?? this.options.id);
    if (this.stopped || this.away || this.link.state !== 'stopped') {
      claim.release();
      return;
    }
    this.claim = claim;
    this.link.start();
  }

  down() {
    this.questions.fail('the connection to natscope ended');
    this.live?.pause();
  }

  /** @returns {Place} the place as it may be told */
  place() {
    const place = this.env.place();
    return { ...place, url: tellableURL(place.url, this.redact) };
  }

  /** @returns {import('./protocol.js').Hello} */
  hello() {
    const place = this.place();
    this.told = place;
    return {
      type: 'hello', version: VERSION, id: this.claim?.id ?? '', realm: this.realm, now: this.env.now(),
      name: this.options.name, ...place, kind: this.env.kind, hostname: this.env.hostname, pid: this.env.pid, runtime: this.env.runtime, library: LIBRARY,
      capabilities: [...CAPABILITIES],
    };
  }

  /** @param {import('./protocol.js').ServerMessage} m */
  receive(m) {
    switch (m.type) {
      case 'welcome':
        this.outbox.setRate(m.limits.recordsPerSecond);
        if (m.resumed) this.outbox.resume(m.last);
        else this.outbox.restart();
        this.live?.resume(m.resumed);
        if (m.resnapshot || !m.resumed) this.resnapshot();
        this.renamed(m.source);
        this.placeChanged();
        break;
      case 'ack':
        this.outbox.ack(m.n);
        break;
      case 'resnapshot':
        this.resnapshot();
        break;
      case 'command':
        this.command(m).catch(e => this.faults.add(e));
        break;
      case 'reply':
        this.questions.answered(m);
        break;
      case 'problem':
        this.faults.add(m.reason);
        break;
    }
    this.pump();
    if (this.tree.pending) this.scheduleFlush();
  }

  /**
   * Carries a command out. What commands need is loaded with the first one.
   * @param {import('./protocol.js').CommandMessage} m
   */
  async command(m) {
    this.loading ??= this.loadLive();
    try {
      await (this.live ?? await this.loading).receive(m);
    } catch (e) {
      this.loading = undefined;
      this.link.send(JSON.stringify({ type: 'answer', id: m.id, ok: false, error: { code: 'failed', message: `the page could not load what the command needs: ${messageOf(e)}` } }));
    }
  }

  /** @returns {Promise<Live>} */
  async loadLive() {
    const { env, faults } = this;
    const [{ Live }, tools] = await Promise.all([import('./live.js'), env.tools()]);
    this.live = new Live({ env, tools, tree: () => this.tree, panels: this.panels, faults, send: text => void this.link.send(text), handles: () => this.link.limits.handles });
    if (this.stopped) this.live.stop();
    return this.live;
  }

  resnapshot() {
    this.outbox.clearTree();
    this.tree.reset();
  }

  /**
   * The server gave the page another id than it asked for.
   * @param {string} id
   */
  renamed(id) {
    if (!this.claim || this.claim.id === id) return;
    this.claim.id = id;
    remember(this.env.ground, id);
  }

  /**
   * @param {Plane} plane
   * @param {string} topic
   * @param {string} data JSON
   * @param {number} [t] when, on the page's clock; default now
   */
  record(plane, topic, data, t = this.env.now()) {
    if (this.stopped) return;
    this.outbox.push(plane, t, topic, data);
    this.pump();
  }

  /** Sends what can be sent once the page's current task is done, or a little later, so that what comes together goes together. */
  pump() {
    if (this.pumping || this.link.state !== 'up') return;
    this.pumping = true;
    const send = () => this.faults.run(() => {
      this.pumping = false;
      this.drain(false);
      if (this.tree.pending) this.scheduleFlush();
    });
    // Timers of hidden pages may take a minute, and a process may end.
    const rest = this.env.kind === 'client' && this.told?.visible ? this.drained + SEND_EVERY - this.env.now() : 0;
    if (rest > 0) this.env.setTimer(send, rest);
    else queueMicrotask(send);
  }

  /** @param {boolean} last whether the page leaves */
  drain(last) {
    const now = this.env.now();
    for (let i = 0; i < 256 && this.link.state === 'up'; i++) {
      const text = this.outbox.next(now, last);
      if (text === undefined) break;
      this.link.send(text);
      this.drained = now;
    }
    // Acknowledgements go on with the rest; only a spent rate needs a timer.
    if (!last && this.outbox.tokens <= 0 && this.timer === undefined) {
      this.timer = this.env.setTimer(() => {
        this.timer = undefined;
        this.pump();
      }, 50);
    }
  }

  /** Flushes the tree when the environment says that it is time, and the last flush has paid for itself. */
  scheduleFlush() {
    if (this.flushing || this.stopped || this.link.state !== 'up') return;
    this.flushing = true;
    const rest = Math.min(MAX_REST, this.spent * (this.live?.watched ? REST_WATCHED : REST_ALONE));
    this.env.nextFlush(() => this.faults.run(() => {
      this.flushing = false;
      this.flushTree(false);
    }), Math.max(0, this.flushed + rest - this.env.now()));
  }

  /**
   * Turns what changed of the tree into records and sends them. While older ones
   * still wait, changes go on merging instead.
   * @param {boolean} all whether it must be all, however long it takes
   */
  flushTree(all) {
    if (this.stopped || this.link.state !== 'up' || !this.outbox.treeIdle) return;
    const now = this.env.now();
    const spent = () => this.env.now() - now >= FLUSH;
    for (const { topic, data } of this.tree.take(all ? undefined : spent)) this.outbox.push('tree', now, topic, data);
    this.drain(all);
    this.flushed = this.env.now();
    this.spent = this.flushed - now;
    if (this.tree.pending) this.scheduleFlush();
  }

  placeChanged() {
    if (!this.told) return;
    const now = this.place();
    /** @type {Omit<import('./protocol.js').UpdateMessage, 'type'>} */
    const u = {};
    if (now.url !== this.told.url) u.url = now.url;
    if (now.title !== this.told.title) u.title = now.title;
    if (now.visible !== this.told.visible) u.visible = now.visible;
    this.told = now;
    if (Object.keys(u).length === 0) return;
    this.outbox.pushUpdate(u);
    this.pump();
  }

  /** The page goes away: it says so, and lets go of everything that would keep it out of the back/forward cache. */
  leave() {
    if (this.away || this.stopped) return;
    this.away = true;
    this.live?.pause();
    this.flushTree(true);
    this.drain(true);
    this.link.send(JSON.stringify({ type: 'bye', reason: 'the page was closed or left' }));
    this.link.stop();
    this.claim?.release();
  }

  /** The page came back from the back/forward cache: it is the same realm under the same id. */
  back() {
    if (!this.away || this.stopped) return;
    this.away = false;
    this.connect().catch(e => this.faults.add(e));
  }

  /** Ends everything and puts back everything that was patched. */
  stop() {
    if (this.stopped) return;
    this.faults.run(() => this.leave());
    this.stopped = true;
    this.live?.stop();
    this.patches.restore();
    for (const undo of this.undos.reverse()) this.faults.run(undo);
    this.env.clearTimer(this.timer);
  }

  /**
   * Shows a component in the tree.
   * @param {string} name
   * @param {Record<string, unknown>} [values]
   * @param {Component | null} [parent] default: the page
   * @param {ComponentOptions} [options]
   * @returns {Component}
   */
  component(name, values, parent, options) {
    const above = parent === undefined || parent === null ? undefined : nodes.get(parent);
    const lost = this.stopped || parent !== undefined && parent !== null && !above;
    // What the page shows itself comes before what others tell of it.
    if (!lost && this.tree !== this.components && this.tree.adoptable) this.show(this.components);
    const n = lost ? undefined : this.faults.run(() => this.components.add(name, values, above, options ?? {}));
    /** @type {Component} */
    const handle = Object.freeze({
      id: n?.id ?? 0,
      update: (/** @type {Record<string, unknown>} */ values) => this.updated(n, values),
      remove: () => void this.faults.run(() => n && this.changed(() => this.components.remove(n))),
    });
    if (n) nodes.set(handle, n);
    this.scheduleFlush();
    return handle;
  }

  /**
   * A transport for a runespect agent, by which a panel elsewhere can follow
   * this page over natscope: what is sent are records of the topic "runespect",
   * and what comes is sent by the command runespect.send.
   * @returns {{send: (message: object) => void, onMessage: (callback: (message: any) => void) => () => void}}
   */
  runespect() {
    return {
      send: message => void this.faults.run(() => this.record('event', 'runespect', JSON.stringify(message))),
      onMessage: callback => {
        this.panels.add(callback);
        return () => void this.panels.delete(callback);
      },
    };
  }

  /**
   * Shows a Cordis runtime in the place of components.
   * @param {object} ctx any context of it
   * @param {{details?: boolean}} [options]
   * @returns {() => void} shows components again
   */
  cordis(ctx, options) {
    /** @type {import('./cordis.js').CordisTree | undefined} */
    let tree;
    let ended = false;
    import('./cordis.js').then(({ CordisTree }) => {
      if (ended || this.stopped) return;
      tree = new CordisTree(ctx, {
        details: options?.details === true, limits: () => this.link.limits, changed: () => this.scheduleFlush(), faults: this.faults, revision: this.tree.revision,
      });
      this.undos.push(() => tree?.stop());
      this.show(tree);
    }).catch(e => this.faults.add(e));
    return () => {
      ended = true;
      tree?.stop();
      if (this.tree === tree) this.show(this.components);
    };
  }

  /** @param {AnyTree} tree */
  show(tree) {
    tree.revision = this.tree.revision;
    this.tree = tree;
    this.resnapshot();
    this.scheduleFlush();
  }

  /**
   * What a page may do ten thousand times a second.
   * @param {TreeNode | undefined} n
   * @param {Record<string, unknown>} values
   */
  updated(n, values) {
    if (!n || this.stopped) return;
    try {
      this.components.update(n, values);
      if (!this.flushing) this.scheduleFlush();
    } catch (e) {
      this.faults.add(e);
    }
  }

  /** @param {() => void} f changes the tree */
  changed(f) {
    if (this.stopped) return;
    f();
    this.scheduleFlush();
  }

  /**
   * Shows a component to everybody who looks at the page in DevTools.
   * @param {Component} component
   */
  reveal(component) {
    const n = nodes.get(component);
    // Whoever is told to look at it has to have it.
    if (n?.alive && !n.sent) this.flushTree(true);
    if (n?.alive) this.record('event', 'natscope.reveal', `{"id":${n.id}}`);
  }

  /**
   * Asks the server for the trees of all Cordis runtimes.
   * @returns {Promise<object>} {schemaVersion, host, clients}, detached from everything live
   */
  getTree() {
    return this.questions.ask('cordis');
  }

  /**
   * Publishes a payload under a topic of the application.
   * @param {string} topic
   * @param {unknown} payload plain JSON; anything else is a TypeError that names the place
   */
  publish(topic, payload) {
    if (typeof topic !== 'string' || topic === '' || topic.length > 200) throw new TypeError('natscope: a topic has 1 to 200 characters');
    this.record('event', topic, losslessJSON(payload));
  }
}
