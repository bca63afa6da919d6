import { CommandError } from './failure.js';
import { Panel } from './panel.js';
import { hasMarker } from './path.js';
import { RUNE_TAG, converted } from './runevalue.js';
import { SentTree } from './senttree.js';
import { cut } from './text.js';
import { TAG, primitiveText } from './value.js';

/** @typedef {import('./panel.js').Message} Message */
/** @typedef {import('./panel.js').RuneNode} RuneNode */
/** @typedef {import('./senttree.js').Sent} Sent */

/** Numbers of these nodes begin behind all that components and Cordis can have. */
const FIRST_ID = 2 ** 41;
/** How large a value may be, in UTF-16 units of JSON. */
const VALUE_SIZE = 8 << 10;
/** How large all values of a node may be together: a unit may be three bytes, and a reader refuses a node of 448 KiB. */
const NODE_SIZE = 100 << 10;
/** How long a page may take to answer, in milliseconds. */
const PATIENCE = 5000;
/** How deep a tree may be. */
const MAX_DEPTH = 255;

/**
 * The components of a page with a runespect agent, of which this is the panel:
 * what the agent tells becomes the page's tree, and what people do in DevTools goes to the agent.
 */
export class RuneTree {
  /**
   * @param {object} o
   * @param {(m: Message) => void} o.send
   * @param {(f: () => void, ms: number) => unknown} o.setTimer
   * @param {(timer: any) => void} o.clearTimer
   * @param {() => void} o.changed
   * @param {(event: 'picked' | 'highlighted', id: number) => void} o.tell
   * @param {() => {nodes: number}} o.limits
   * @param {number} o.revision
   */
  constructor({ send, setTimer, clearTimer, changed, tell, limits, revision }) {
    this.tell = tell;
    this.limits = limits;
    this.setTimer = setTimer;
    this.clearTimer = clearTimer;
    this.sent = new SentTree(revision);
    this.dirty = true;
    this.lastID = FIRST_ID;
    /** @type {Map<string, number>} the numbers of the agents' nodes */
    this.ids = new Map();
    /** @type {Map<string, {resolve: (v: any) => void, timer: unknown}>} questions to the agent */
    this.waiting = new Map();
    this.panel = new Panel({
      send, setTimer, clearTimer, oneTab: true, answered: m => this.answered(m),
      changed: () => {
        this.dirty = true;
        changed();
      },
    });
    this.root = { id: this.idOf(''), object: {} };
    /** @type {Record<string, (p: any) => unknown>} */
    this.methods = {
      'tree.inspect': p => this.inspect(p),
      'tree.edit': p => this.edit(p),
      'tree.highlight': p => this.panel.tell({ kind: 'highlight', id: p?.id === 0 ? null : this.node(p).id }),
      'tree.pick': p => this.panel.tell({ kind: 'pick', active: p?.active === true }),
      'tree.log': p => this.panel.tell({ kind: 'log', id: this.node(p).id }),
      'tree.storeGlobal': p => this.storeGlobal(p),
      'tree.open': p => this.open(p),
    };
  }

  start() {
    this.panel.start();
  }

  stop() {
    this.panel.tell({ kind: 'highlight', id: null });
    this.panel.stop();
  }

  get revision() {
    return this.sent.revision;
  }

  set revision(n) {
    this.sent.revision = n;
  }

  get adoptable() {
    return true;
  }

  get pending() {
    return this.panel.nodes !== undefined && (this.dirty || this.sent.whole);
  }

  reset() {
    this.sent.whole = true;
  }

  take() {
    if (!this.panel.nodes) return [];
    this.dirty = false;
    const { root, truncated } = this.build(this.panel.nodes);
    return this.sent.take(root, { profile: 'component', truncated });
  }

  /**
   * @param {Map<number, RuneNode>} nodes
   * @returns {{root: Sent, truncated: boolean}}
   */
  build(nodes) {
    let left = this.limits().nodes;
    let truncated = false;
    const placed = new Set();
    /** @type {(list: RuneNode[], parent: Sent, depth: number) => void} */
    const add = (list, parent, depth) => {
      let after = 0;
      for (const n of list) {
        // A node twice, or in itself, would be a tree without end.
        if (placed.has(n.id)) continue;
        if (--left <= 0 || depth > MAX_DEPTH) {
          truncated = true;
          return;
        }
        placed.add(n.id);
        const id = this.idOf(String(n.id));
        /** @type {Sent} */
        const made = { id, name: n.name, object: n, parent: parent.id, after, alone: alone(id, n), children: [] };
        parent.children.push(made);
        after = id;
        add(n.children.flatMap(c => nodes.get(c) ?? []), made, depth + 1);
      }
    };
    /** @type {Sent} */
    const root = { id: this.root.id, name: 'page', object: this.root.object, parent: 0, after: 0, alone: `{"id":${this.root.id},"name":"page"}`, children: [] };
    add([...nodes.values()].filter(n => n.parent === null || n.parent === undefined || !nodes.has(n.parent)), root, 2);
    return { root, truncated };
  }

  /**
   * @param {string} key
   * @returns {number}
   */
  idOf(key) {
    const of = `${this.panel?.following ?? ''} ${key}`;
    let id = this.ids.get(of);
    if (id === undefined) {
      id = ++this.lastID;
      this.ids.set(of, id);
      // Numbers of nodes that are long gone only take room.
      if (this.ids.size > 200000) this.ids.clear();
    }
    return id;
  }

  /**
   * @param {any} p
   * @returns {RuneNode}
   */
  node(p) {
    const found = this.sent.nodes.get(p?.id);
    if (!found || found.id === this.root.id) throw new CommandError('object-not-found', `component ${p?.id} is not on the page any more`);
    return found.object;
  }

  /**
   * @param {string} key
   * @param {Omit<Message, 'source'>} m
   * @returns {Promise<any>} the agent's answer, undefined if none came
   */
  ask(key, m) {
    return new Promise(resolve => {
      const timer = this.setTimer(() => {
        this.waiting.delete(key);
        resolve(undefined);
      }, PATIENCE);
      this.waiting.get(key)?.resolve(undefined);
      this.waiting.set(key, { resolve, timer });
      this.panel.tell(m);
    });
  }

  /** @param {Message} m */
  answered(m) {
    if (m.kind === 'picked') {
      this.tell('picked', m.id === null ? 0 : this.ids.get(`${this.panel.following ?? ''} ${m.id}`) ?? 0);
      return;
    }
    const key = m.kind === 'hydrate' ? `hydrate ${m.id} ${JSON.stringify(m.path)}` : m.kind === 'opened' ? `opened ${m.loc}` : '';
    const w = this.waiting.get(key);
    if (!w) return;
    this.waiting.delete(key);
    this.clearTimer(w.timer);
    w.resolve(m);
  }

  /** @param {any} p */
  async inspect(p) {
    const { id } = this.node(p);
    if (!Array.isArray(p.path) || typeof p.path[0] !== 'string') throw new CommandError('malformed', 'path must begin with the name of a value');
    const m = await this.ask(`hydrate ${id} ${JSON.stringify(p.path)}`, { kind: 'inspect', id, path: p.path, ...(p.limit ? { limit: p.limit } : {}) });
    return m && 'value' in m ? { value: converted(m.value) } : {};
  }

  /** @param {any} p */
  edit(p) {
    const n = this.node(p);
    if (!n.writable?.includes(p.symbol)) throw new CommandError('refused', `${p.symbol} of ${n.name} cannot be set: the page has no setter for it`);
    if (p.value === undefined || hasMarker(p.value) || hasMarker(p.value, RUNE_TAG)) throw new CommandError('refused', 'the new value stands for something that was never loaded');
    this.panel.tell({ kind: 'edit', id: n.id, symbol: p.symbol, path: p.path ?? [], value: p.value });
  }

  /** @param {any} p */
  storeGlobal(p) {
    const { id } = this.node(p);
    this.panel.tell({ kind: 'storeGlobal', id, ...(p.symbol ? { symbol: p.symbol } : {}) });
    return { name: '$r' };
  }

  /** @param {any} p */
  async open(p) {
    if (typeof p?.loc !== 'string') throw new CommandError('malformed', 'loc must be a file, or file:line');
    const hello = this.panel.following === undefined ? undefined : this.panel.pages.get(this.panel.following)?.hello;
    if (hello?.openInEditor !== undefined) throw new CommandError('unsupported', 'the page does not open files in an editor');
    const m = await this.ask(`opened ${p.loc}`, { kind: 'open-in-editor', loc: p.loc });
    if (!m?.ok) throw new CommandError('refused', 'the development server of the page did not take the request');
  }

  /**
   * The agent has the live objects; of a node there is what the agent told.
   * @param {number} id
   * @returns {object | undefined}
   */
  live(id) {
    return this.sent.nodes.get(id)?.object;
  }

  /** @returns {undefined} */
  nodeOf() {
    return undefined;
  }

  /** @returns {undefined} */
  get() {
    return undefined;
  }

  /** @returns {never[]} */
  nodes() {
    return [];
  }

  /** @returns {undefined} */
  setter() {
    return undefined;
  }
}

/**
 * @param {number} id
 * @param {RuneNode} n
 * @returns {string} its JSON without children
 */
function alone(id, n) {
  /** @type {[string, string][]} */
  const attrs = [];
  /** @type {Record<string, unknown>} */
  const values = Object.create(null);
  let room = NODE_SIZE;
  for (const [key, v] of Object.entries(n.values ?? {}).slice(0, 100)) {
    const name = cut(key, 200);
    const text = primitiveText(v);
    if (text !== undefined && name !== '' && attrs.length < 20) attrs.push([name, text]);
    const value = converted(v);
    const size = JSON.stringify(value).length;
    const fits = size <= VALUE_SIZE && size <= room;
    if (fits) room -= size;
    values[name] = fits ? value : { [TAG]: 'dehydrated', type: Array.isArray(value) ? 'array' : 'object', preview: '…', size: 0 };
  }
  const names = Object.keys(values);
  const kinds = Object.entries(n.kinds ?? {}).filter(([k, v]) => names.includes(k) && typeof v === 'string');
  const writable = [...new Set(list(n.writable).filter(w => names.includes(w)))];
  const snippets = list(n.snippets).slice(0, 100).map(s => cut(String(s), 200));
  return JSON.stringify({
    id, name: cut(n.name, 200) || 'Anonymous',
    ...(attrs.length > 0 ? { attrs } : {}), ...(names.length > 0 ? { values } : {}),
    ...(kinds.length > 0 ? { valueKinds: Object.fromEntries(kinds) } : {}), ...(writable.length > 0 ? { writable } : {}),
    ...(typeof n.loc === 'string' && n.loc ? { loc: cut(n.loc, 1000) } : {}),
    ...(snippets.length > 0 ? { snippets } : {}),
  });
}

/**
 * @param {unknown} v
 * @returns {any[]} v, or nothing where it is no array
 */
function list(v) {
  return Array.isArray(v) ? v : [];
}
