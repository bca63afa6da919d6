/**
 * A simulator of a runespect agent, of the tabs that pages live in, and of the
 * bus between pages and panels, on which messages may be lost. It follows the
 * published description of the protocol, version 1.
 */

/** A bus: every message reaches every listener, its sender included, as JSON. */
export class Bus {
  constructor() {
    this.listeners = new Set();
    this.queue = [];
    /** Decides which messages are lost. */
    this.lose = () => false;
    this.log = [];
  }

  connect(tag) {
    const bus = this;
    let callback;
    const listener = m => {
      // A transport drops the copies of its own that the channel echoes back.
      if (m.__rsFrom !== tag) callback?.(m);
    };
    bus.listeners.add(listener);
    return {
      send(message) {
        const m = JSON.parse(JSON.stringify({ ...message, __rsFrom: tag }));
        bus.log.push(m);
        if (bus.lose(m)) return;
        bus.queue.push(m);
        if (bus.queue.length > 1) return;
        // One message after the other, as they were sent.
        for (; bus.queue.length > 0; bus.queue.shift()) {
          for (const l of [...bus.listeners]) l(JSON.parse(JSON.stringify(bus.queue[0])));
        }
      },
      onMessage(f) { callback = f; },
      close() { bus.listeners.delete(listener); },
    };
  }
}

/** A tab: its storage survives a reload, and is copied with the tab. */
export class Tab {
  constructor(storage = {}) { this.storage = { ...storage }; }
  copy() { return new Tab(this.storage); }
}

let pages = 0;

/** The agent of one page, in one of the modes quiet, watched, following, away and ended. */
export class Agent {
  constructor(bus, tab = new Tab(), { url = '/', title = 'Page', visible = true, tier = 0, version = 1, id = `page-${++pages}`, app = () => {} } = {}) {
    Object.assign(this, { bus, tab, url, title, visible, tier, version });
    this.id = id;
    this.n = 0;
    this.mode = 'quiet';
    this.nodes = new Map();
    this.live = new Map();
    this.commits = [];
    this.seq = 0;
    this.did = [];
    app(this);
    const before = tab.storage.__runespect_page;
    if (before !== undefined && before !== this.id && !tab.claimed) this.replaces = before;
    this.transport = bus.connect(this.id);
    this.transport.onMessage(m => this.receive(m));
    if (this.replaces) this.watch();
    this.hello();
  }

  send(m) {
    if (this.mode === 'ended' || this.mode === 'away' && m.kind !== 'bye') return;
    this.transport.send({ source: 'runespect', from: this.id, n: ++this.n, ...m });
  }

  hello() {
    this.send({ kind: 'hello', version: this.version, tier: this.tier, url: this.url, title: this.title, visible: this.visible, agentVersion: '0.2.0', ...(this.replaces ? { replaces: this.replaces } : {}) });
  }

  watch() {
    if (this.mode === 'quiet') this.mode = 'watched';
    this.tab.storage.__runespect_page = this.id;
  }

  receive(m) {
    if (m.source !== 'runespect' || this.mode === 'ended' || this.mode === 'away') return;
    if (m.to !== undefined && m.to !== this.id) return;
    switch (m.kind) {
      case 'request':
        this.watch();
        if (m.to === this.id || this.mode === 'following') {
          this.mode = 'following';
          this.send({ kind: 'tree', nodes: [...this.nodes.values()] });
        }
        this.hello();
        break;
      case 'ping':
        if (m.to !== this.id) return;
        this.watch();
        this.hello();
        break;
      case 'history-request': this.send({ kind: 'history', commits: this.commits.filter(c => c.seq > m.since), truncated: this.seq > this.commits.length }); break;
      case 'inspect': this.inspect(m); break;
      case 'edit': this.edit(m); break;
      case 'pick': this.picking = m.active; break;
      case 'open-in-editor': this.send({ kind: 'opened', loc: m.loc, ok: m.loc === 'App.svelte:3' }); break;
      case 'highlight':
        this.highlighted = m.id;
        this.did.push(`highlight ${m.id}`);
        break;
      case 'log': case 'storeGlobal': this.did.push(`${m.kind} ${m.id}${m.symbol ? ` ${m.symbol}` : ''}`); break;
    }
  }

  inspect({ id, path: [symbol, ...steps] }) {
    let at = this.live.get(id)?.[symbol];
    for (const s of steps) at = at?.[s];
    this.send({ kind: 'hydrate', id, path: [symbol, ...steps], ...(at === undefined ? {} : { value: at !== null && typeof at === 'object' ? encode(at) : at }) });
  }

  /** There is no answer: the change comes back as ops, or not at all. */
  edit({ id, symbol, path, value }) {
    const node = this.nodes.get(id);
    if (!node?.writable.includes(symbol) || JSON.stringify(value).includes('__runespect')) return;
    const values = { ...this.live.get(id) };
    const set = (at, [step, ...rest]) => step === undefined ? value : Object.assign(Array.isArray(at) ? at.slice() : { ...at }, { [step]: set(at[step], rest) });
    values[symbol] = set(values[symbol], path);
    this.flush(() => this.put(id, node.name, node.parent, values));
  }

  /** Adds a component, or changes one. */
  put(id, name, parent, values, more = {}) {
    const old = this.nodes.get(id);
    this.live.set(id, values);
    this.nodes.set(id, { snippets: [], writable: Object.keys(values), kinds: {}, children: [], ...old, id, name, parent, values: Object.fromEntries(Object.entries(values).map(([k, v]) => [k, v !== null && typeof v === 'object' ? encode(v) : v])), ...more });
    if (!old && parent !== null) {
      const p = this.nodes.get(parent);
      this.nodes.set(parent, { ...p, children: [...p.children, id] });
    }
  }

  remove(id) {
    const node = this.nodes.get(id);
    for (const c of node.children) this.remove(c);
    this.nodes.delete(id);
    const p = this.nodes.get(node.parent);
    if (p) this.nodes.set(p.id, { ...p, children: p.children.filter(c => c !== id) });
  }

  /** One flush of the framework: what changed in f goes as ops. */
  flush(f) {
    const before = new Map(this.nodes);
    f();
    const ops = [];
    for (const id of before.keys()) if (!this.nodes.has(id)) ops.push({ op: 'remove', id });
    for (const [id, node] of this.nodes) {
      if (!before.has(id)) ops.push({ op: 'add', node });
      else if (JSON.stringify(before.get(id)) !== JSON.stringify(node)) ops.push({ op: 'update', node });
    }
    this.commits.push({ seq: ++this.seq, t: this.seq, changes: ops.map(o => ({ op: o.op, id: o.id ?? o.node.id, name: o.node?.name ?? '' })) });
    if (this.commits.length > 200) this.commits.shift();
    if (this.mode === 'following') this.send({ kind: 'ops', ops, commit: this.seq, t: this.seq });
  }

  change(what) {
    Object.assign(this, what);
    if (this.mode === 'watched' || this.mode === 'following') this.hello();
  }

  pagehide() {
    if (this.mode === 'watched' || this.mode === 'following') {
      const m = this.mode;
      this.send({ kind: 'bye' });
      this.before = m;
    }
    this.mode = 'away';
  }

  /** The page comes back from the back/forward cache, without naming a page before. */
  pageshow() {
    this.mode = 'watched';
    this.replaces = undefined;
    this.hello();
  }

  reload({ bye = true } = {}) {
    if (bye) this.pagehide();
    this.mode = 'ended';
    this.transport.close();
    const { url, title, visible, tier, version } = this;
    return new Agent(this.bus, this.tab, {
      url, title, visible, tier, version,
      app: next => {
        next.nodes = new Map(this.nodes);
        next.live = new Map(this.live);
      },
    });
  }

  disconnect() {
    this.mode = 'ended';
    this.picking = false;
    this.highlighted = null;
    this.transport.close();
  }
}

/** The encoding of values, one level deep, as far as the tests need it. */
export function encode(v) {
  const inner = x => x !== null && typeof x === 'object' ? { __runespect: 'dehydrated', type: Array.isArray(x) ? 'array' : 'object', preview: '…', size: Object.keys(x).length } : x;
  return Array.isArray(v) ? v.map(inner) : Object.fromEntries(Object.entries(v).map(([k, x]) => [k, inner(x)]));
}
