/**
 * The panel's side of the runespect page-panel protocol, version 1: which page
 * is followed, what is done about lost messages, and the tree of the page that
 * is followed. It is a function of messages and times, and knows no transport.
 */

export const RUNESPECT = 'runespect';
export const RUNESPECT_VERSION = 1;

/** How long an answer is waited for, in milliseconds, and how often a page is asked again for what was lost. */
export const WAIT = 1000;
export const REPAIRS = 3;

/** How many pages are known at once, and how many things that went wrong are remembered. */
const MAX_PAGES = 100;
const MAX_EVENTS = 200;

/** @typedef {{source: string, kind: string, from?: string, n?: number, [key: string]: any}} Message */
/** @typedef {{id: number, name: string, parent: number | null, children: number[], values: Record<string, any>, snippets?: string[], writable?: string[], kinds?: Record<string, string>, loc?: string}} RuneNode */

/**
 * A page that was heard.
 * @typedef {object} Page
 * @property {string} id empty for a sender that has none
 * @property {number} n the number of the last message
 * @property {Message | undefined} hello
 * @property {boolean} gone it said goodbye
 * @property {boolean} quiet it has no agent, and answers no ping
 */

/**
 * @typedef {object} PanelOptions
 * @property {(m: Message) => void} send
 * @property {(f: () => void, ms: number) => unknown} setTimer
 * @property {(timer: any) => void} clearTimer
 * @property {() => void} changed the tree or the page that is followed changed
 * @property {(m: Message) => void} answered a hydrate, picked, opened or history of the page that is followed
 * @property {boolean} [oneTab] the transport leads to one tab only
 * @property {string} [url] the address that the panel was opened for, or remembers
 */

export class Panel {
  /** @param {PanelOptions} o */
  constructor(o) {
    this.o = o;
    /** @type {Map<string, Page>} */
    this.pages = new Map();
    /** @type {string | undefined} */
    this.following = undefined;
    /** @type {'picked' | 'url' | 'first' | undefined} why it is followed */
    this.reason = undefined;
    this.url = o.url;
    /** Whether the page that is followed was hidden when it was taken because it was the first. */
    this.tookHidden = false;
    /** @type {string | undefined} a page that went and may come back, or another in its place */
    this.lost = undefined;
    /** @type {Map<number, RuneNode> | undefined} */
    this.nodes = undefined;
    /** @type {{page: string, what: string}[]} what went wrong */
    this.events = [];
    this.attempts = 0;
    /** Whether an answer to a request by name has not come. */
    this.asking = false;
    /** @type {unknown} */
    this.timer = undefined;
    /** @type {unknown} */
    this.waiting = undefined;
    /** @type {string | undefined} the page that was asked whether it is there still */
    this.pinging = undefined;
    /** Whether it is open; before that it hears nothing. */
    this.started = false;
    this.stopped = false;
  }

  /** Asks every page who is there. */
  start() {
    this.started = true;
    this.send({ kind: 'request' });
  }

  stop() {
    this.stopped = true;
    this.o.clearTimer(this.timer);
    this.o.clearTimer(this.waiting);
  }

  /** @param {Omit<Message, 'source'>} m */
  send(m) {
    if (!this.stopped) this.o.send(/** @type {Message} */ ({ source: RUNESPECT, ...m }));
  }

  /**
   * Sends a command to the page that is followed.
   * @param {Omit<Message, 'source'>} m
   */
  tell(m) {
    this.send(this.following ? { ...m, to: this.following } : m);
  }

  /**
   * The person chose a page.
   * @param {string} id
   */
  pick(id) {
    const page = this.pages.get(id);
    if (!page) return;
    this.url = page.hello?.url;
    this.lost = undefined;
    this.follow(id, 'picked');
  }

  /** The transport to the pages was made anew: what is known may be stale. */
  reconnected() {
    this.send({ kind: 'request' });
    if (this.following !== undefined) this.ask();
  }

  /** @param {Message} m */
  receive(m) {
    if (!this.started || this.stopped || m?.source !== RUNESPECT) return;
    const id = typeof m.from === 'string' ? m.from : '';
    const known = this.pages.has(id);
    const page = this.page(id);
    if (!page) return;
    const gap = this.count(page, m, known);
    if (gap === 'heard') return;
    if (gap && id === this.following) this.repair();
    this.take(page, m, known, Boolean(gap));
  }

  /**
   * @param {string} id
   * @returns {Page | undefined}
   */
  page(id) {
    let page = this.pages.get(id);
    if (page || this.pages.size >= MAX_PAGES) return page;
    page = { id, n: 0, hello: undefined, gone: false, quiet: id === '' };
    this.pages.set(id, page);
    return page;
  }

  /**
   * Looks at a message's number.
   * @param {Page} page
   * @param {Message} m
   * @param {boolean} known
   * @returns {boolean | 'heard'} whether messages before it are missing, or it was heard already
   */
  count(page, m, known) {
    if (typeof m.n !== 'number') return false;
    const last = page.n;
    if (known && m.n <= last) {
      // A page that connects again counts from 1, and says hello first.
      if (m.n === 1 && m.kind === 'hello') {
        page.n = 1;
        return false;
      }
      this.event(page.id, `message ${m.n} came after ${last}`);
      return 'heard';
    }
    page.n = m.n;
    const gap = known && last > 0 && m.n > last + 1;
    if (gap) this.event(page.id, `${m.n - last - 1} messages before ${m.n} were lost`);
    return gap;
  }

  /**
   * @param {string} page
   * @param {string} what
   */
  event(page, what) {
    this.events.push({ page, what });
    if (this.events.length > MAX_EVENTS) this.events.shift();
  }

  /**
   * @param {Page} page
   * @param {Message} m
   * @param {boolean} known
   * @param {boolean} gap
   */
  take(page, m, known, gap) {
    switch (m.kind) {
      case 'hello': this.hello(page, m, known); break;
      case 'bye': this.bye(page); break;
      case 'tree': this.tree(page, m); break;
      case 'ops': if (page.id === this.following && !gap && this.nodes) this.ops(m); break;
      case 'history': case 'hydrate': case 'picked': case 'opened':
        if (page.id === this.following) this.o.answered(m);
        break;
    }
  }

  /**
   * @param {Page} page
   * @param {Message} m
   * @param {boolean} known
   */
  hello(page, m, known) {
    const first = !page.hello;
    // Out of the cache, or on a new connection, it sends its flushes only when it is asked again.
    const again = page.gone || known && m.n === 1 && !this.asking;
    page.hello = m;
    page.gone = false;
    page.quiet = page.id === '';
    if (m.version !== RUNESPECT_VERSION && first) this.event(page.id, `the page speaks version ${m.version}, this panel version ${RUNESPECT_VERSION}`);
    if (page.id === this.following) {
      if (this.reason !== 'first' && m.url) this.url = m.url;
      this.o.clearTimer(this.waiting);
      if (this.pinging === page.id) this.pinging = undefined;
      if (this.lost === page.id) this.lost = undefined;
      if (again) {
        this.attempts = 0;
        this.ask();
      }
      return;
    }
    if (this.takes(page, m)) return;
    // Whether it has an agent, and is told of when it goes, is found out by asking.
    if (first && !known && page.id !== '') this.send({ kind: 'ping', to: page.id });
  }

  /**
   * Decides whether a page takes the panel.
   * @param {Page} page
   * @param {Message} m
   * @returns {boolean}
   */
  takes(page, m) {
    const { following } = this;
    const replaced = m.replaces;
    // A page in the place of the one that went, or that one itself out of the cache.
    const back = this.lost !== undefined && (replaced === this.lost || page.id === this.lost);
    if (back && (this.reason !== 'picked' || following === undefined || following === this.lost)) return this.follow(page.id, this.reason ?? 'first');
    // Whoever has no id has no agent either.
    if (following === undefined || following === '' && page.id !== '') return this.follow(page.id, this.url !== undefined && m.url === this.url ? 'url' : 'first');
    if (replaced !== undefined && replaced === following) {
      if (this.o.oneTab || this.pages.get(following)?.gone) return this.follow(page.id, this.reason ?? 'first');
      this.ping(following, page.id);
      return false;
    }
    if (this.reason === 'first' && this.url !== undefined && m.url === this.url) return this.follow(page.id, 'url');
    if (this.reason === 'first' && this.url === undefined && this.tookHidden && m.visible === true) return this.follow(page.id, 'first');
    return false;
  }

  /**
   * Asks a page whether it is there still; if not, another takes its place.
   * @param {string} old
   * @param {string} next
   */
  ping(old, next) {
    this.pinging = old;
    this.send({ kind: 'ping', to: old });
    this.o.clearTimer(this.waiting);
    this.waiting = this.o.setTimer(() => {
      if (this.pinging !== old || this.following !== old) return;
      this.pages.delete(old);
      this.follow(next, this.reason ?? 'first');
    }, WAIT);
  }

  /** @param {Page} page */
  bye(page) {
    page.gone = true;
    if (page.id !== this.following) {
      this.pages.delete(page.id);
      return;
    }
    this.o.clearTimer(this.timer);
    this.o.clearTimer(this.waiting);
    this.lost = page.id;
    this.waiting = this.o.setTimer(() => this.leave(page.id), WAIT);
  }

  /**
   * Nothing came in the place of a page that went.
   * @param {string} id
   */
  leave(id) {
    if (this.following !== id || !this.pages.get(id)?.gone) return;
    this.pages.delete(id);
    this.following = undefined;
    this.nodes = undefined;
    const next = [...this.pages.values()].find(p => p.hello && !p.gone && this.url !== undefined && p.hello.url === this.url) ?? [...this.pages.values()].find(p => p.hello && !p.gone);
    if (next) this.follow(next.id, 'first');
    else this.o.changed();
  }

  /**
   * @param {string} id
   * @param {'picked' | 'url' | 'first'} reason
   * @returns {true}
   */
  follow(id, reason) {
    const before = this.following === undefined ? undefined : this.pages.get(this.following);
    if (before?.gone && before.id !== id) this.pages.delete(before.id);
    if (id === this.lost || this.pages.get(id)?.hello?.replaces === this.lost) this.lost = undefined;
    this.o.clearTimer(this.waiting);
    this.following = id;
    this.reason = reason;
    this.tookHidden = reason === 'first' && this.pages.get(id)?.hello?.visible === false;
    this.nodes = undefined;
    this.attempts = 0;
    this.ask();
    this.o.changed();
    return true;
  }

  /** Asks the page that is followed for its tree and history, and again until the tree comes. */
  ask() {
    this.asking = true;
    this.tell({ kind: 'request' });
    this.tell({ kind: 'history-request', since: 0 });
    this.o.clearTimer(this.timer);
    this.timer = this.o.setTimer(() => {
      if (!this.asking || this.following === undefined || this.pages.get(this.following)?.quiet) return;
      if (++this.attempts >= REPAIRS && this.nodes) {
        this.event(this.following, 'the page does not send what was lost');
        return;
      }
      this.ask();
    }, WAIT);
  }

  /** Something of the page that is followed was lost: all of it is asked for again. */
  repair() {
    // What is asked for already is asked for again when it does not come.
    if (this.asking) return;
    this.attempts = 0;
    this.ask();
  }

  /**
   * @param {Page} page
   * @param {Message} m
   */
  tree(page, m) {
    // A sender without an agent says no hello; there is nobody else to follow.
    if (this.following === undefined && page.quiet) this.follow(page.id, 'first');
    if (page.id !== this.following || !Array.isArray(m.nodes)) return;
    this.asking = false;
    this.o.clearTimer(this.timer);
    if (m.nodes.length === 0 && this.nodes && this.nodes.size > 0) return;
    this.nodes = new Map(m.nodes.filter(isNode).map(n => [n.id, n]));
    this.o.changed();
  }

  /** @param {Message} m */
  ops(m) {
    const nodes = /** @type {Map<number, RuneNode>} */ (this.nodes);
    for (const op of Array.isArray(m.ops) ? m.ops : []) {
      if (op?.op === 'remove') nodes.delete(op.id);
      else if (isNode(op?.node)) nodes.set(op.node.id, op.node);
    }
    this.o.changed();
  }
}

/**
 * @param {any} n
 * @returns {n is RuneNode}
 */
function isNode(n) {
  return n !== null && typeof n === 'object' && typeof n.id === 'number' && typeof n.name === 'string' && Array.isArray(n.children);
}
