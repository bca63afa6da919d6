import { collect, details, isContext, servicesOf, unshadowed } from './contexts.js';
import { randomText } from './identity.js';
import { wellFormed } from './text.js';

/** @typedef {import('./contexts.js').Found} Found */
/** @typedef {import('./tree.js').TreeRecord} TreeRecord */

/** How large one record gets, in UTF-16 units of JSON, before the tree goes in parts. */
const RECORD_SIZE = 100 << 10;

/** Numbers of Cordis nodes begin behind all that components can have. */
const FIRST_ID = 2 ** 40;

/** The events of Cordis after which the tree may be another one. */
const EVENTS = ['internal/plugin', 'internal/status', 'internal/listener'];

/**
 * A node as it was sent.
 * @typedef {object} Sent
 * @property {number} id
 * @property {string} name
 * @property {object} object
 * @property {number} parent
 * @property {number} after the node before it, 0 for none
 * @property {string} alone its JSON without children
 * @property {Sent[]} children
 */

/**
 * The tree of a Cordis runtime. It follows the runtime's own events, reads
 * everything once for all that happened since, and sends what is different.
 * Nothing that goes wrong in it reaches the runtime.
 */
export class CordisTree {
  /**
   * @param {any} ctx any context of the runtime
   * @param {object} o
   * @param {boolean} o.details whether nodes say more than what they are
   * @param {() => {cordisNodes: number, depth: number}} o.limits
   * @param {() => void} o.changed called, once for everything that one task does, when the tree may be another one
   * @param {import('./faults.js').Faults} o.faults
   * @param {number} o.revision the revision that was sent last
   */
  constructor(ctx, { details: more, limits, changed, faults, revision }) {
    if (!isContext(ctx)) throw new TypeError('natscope: cordis wants a Context of Cordis');
    this.root = ctx.root;
    this.more = more;
    this.limits = limits;
    this.faults = faults;
    this.revision = revision;
    this.commit = 0;
    this.registry = randomText(16);
    this.truncated = false;
    this.whole = true;
    this.dirty = true;
    this.lastID = FIRST_ID;
    /** @type {WeakMap<object, number>} an object keeps its number as long as it lives */
    this.ids = new WeakMap();
    /** @type {Map<number, Sent>} the tree that the reader has */
    this.sent = new Map();
    /** @type {(() => void)[]} */
    this.undos = [];
    this.scheduled = false;
    this.watch(changed);
  }

  /** @param {() => void} changed */
  watch(changed) {
    const noticed = () => {
      if (this.scheduled) return;
      this.scheduled = true;
      queueMicrotask(() => {
        this.scheduled = false;
        this.dirty = true;
        this.faults.run(changed);
      });
    };
    for (const name of this.more ? [...EVENTS, 'internal/service'] : EVENTS) {
      // A result would stop other listeners.
      this.undos.push(this.root.on(name, () => void noticed(), { global: true }));
    }
  }

  /** Follows the runtime no more. */
  stop() {
    for (const undo of this.undos) this.faults.run(undo);
    this.undos = [];
    this.sent.clear();
  }

  get pending() {
    return this.dirty || this.whole;
  }

  reset() {
    this.whole = true;
  }

  /** @returns {TreeRecord[]} */
  take() {
    this.dirty = false;
    const before = this.truncated;
    const root = this.build();
    const now = index(root);
    const ops = this.whole ? undefined : difference(this.sent, now);
    const same = ops?.length === 0 && before === this.truncated;
    this.sent = now;
    if (same) return [];
    this.revision++;
    if (ops) {
      const text = `{"revision":${this.revision},"commit":${++this.commit},"ops":[${ops.join(',')}]${this.truncated ? ',"truncated":true' : ''}}`;
      if (text.length <= 2 * RECORD_SIZE) return [{ topic: 'ops', data: text }];
    }
    this.whole = false;
    return this.snapshot(root);
  }

  /**
   * @param {Sent} root
   * @returns {TreeRecord[]}
   */
  snapshot(root) {
    const head = `"version":1,"profile":"${this.more ? 'component' : 'cordis'}","revision":${this.revision},"registry":"${this.registry}"${this.truncated ? ',"truncated":true' : ''}`;
    const text = nested(root);
    if (text.length <= RECORD_SIZE) return [{ topic: 'snapshot', data: `{${head},"root":${text}}` }];
    const out = [{ topic: 'begin', data: `{${head}}` }];
    /** @type {string[]} */
    let part = [];
    let size = 0;
    const flush = () => {
      out.push({ topic: 'nodes', data: `{"revision":${this.revision},"nodes":[${part.join(',')}]}` });
      part = [];
      size = 0;
    };
    for (const n of this.sent.values()) {
      const node = `{${n.parent ? `"parent":${n.parent},` : ''}"node":${n.alone}}`;
      if (size + node.length > RECORD_SIZE) flush();
      part.push(node);
      size += node.length;
    }
    if (part.length > 0) flush();
    out.push({ topic: 'commit', data: `{"revision":${this.revision},"count":${this.sent.size}}` });
    return out;
  }

  /** @returns {Sent} the tree as it is, within its limits */
  build() {
    const found = collect(this.root);
    const { cordisNodes, depth } = this.limits();
    const services = this.more ? servicesOf(this.root) : new Map();
    let left = cordisNodes;
    this.truncated = false;
    /** @type {(f: Found, parent: number, after: number, level: number) => Sent} */
    const make = (f, parent, after, level) => {
      left--;
      const id = this.idOf(f.object);
      /** @type {Sent} */
      const n = { id, name: f.kind === 'fiber' ? 'Fiber' : 'Context', object: f.object, parent, after, alone: this.alone(id, f, services), children: [] };
      let last = 0;
      for (const c of f.children) {
        // A fiber comes with its context, and shares its level.
        const need = c.kind === 'fiber' ? 2 : 1;
        if (f.kind === 'context' && (this.truncated || left < need || level >= depth)) {
          this.truncated = true;
          break;
        }
        const made = make(c, id, last, f.kind === 'fiber' ? level : level + 1);
        n.children.push(made);
        last = made.id;
      }
      return n;
    };
    return make(found, 0, 0, 1);
  }

  /**
   * @param {number} id
   * @param {Found} f
   * @param {Map<object, string[]>} services
   * @returns {string}
   */
  alone(id, f, services) {
    const attrs = f.kind === 'fiber' ? [['uid', String(f.uid)]] : [];
    if (this.more) attrs.push(...details(f, services).map(([k, v]) => [k, wellFormed(v)]));
    return `{"id":${id},"kind":"${f.kind}","name":"${f.kind === 'fiber' ? 'Fiber' : 'Context'}"${attrs.length > 0 ? `,"attrs":${JSON.stringify(attrs)}` : ''},"object":"o${id}"}`;
  }

  /**
   * @param {object} object
   * @returns {number}
   */
  idOf(object) {
    let id = this.ids.get(object);
    if (id === undefined) {
      id = ++this.lastID;
      this.ids.set(object, id);
    }
    return id;
  }

  /**
   * @param {number} id
   * @returns {object | undefined}
   */
  live(id) {
    return this.sent.get(id)?.object;
  }

  /**
   * @param {object} v
   * @returns {{id: number, name: string} | undefined}
   */
  nodeOf(v) {
    const id = this.ids.get(v) ?? this.ids.get(behind(v));
    return id === undefined ? undefined : this.sent.get(id);
  }

  /** @returns {undefined} nodes of Cordis are no components */
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
 * What is behind a context that a service sees, and behind what ctx.plugin
 * returns: a fiber with a then of its own.
 * @param {any} v
 * @returns {object}
 */
function behind(v) {
  const shown = unshadowed(v) ?? v;
  if (shown !== v) return shown;
  return Object.getOwnPropertyDescriptor(v, 'then') ? Object.getPrototypeOf(v) ?? v : v;
}

/**
 * @param {Sent} root
 * @returns {Map<number, Sent>} every node, parents first
 */
function index(root) {
  const out = new Map();
  /** @param {Sent} n */
  const add = n => {
    out.set(n.id, n);
    n.children.forEach(add);
  };
  add(root);
  return out;
}

/**
 * @param {Map<number, Sent>} before
 * @param {Map<number, Sent>} now
 * @returns {string[] | undefined} ops, undefined where only a snapshot tells what happened
 */
function difference(before, now) {
  const removes = [];
  const rest = [];
  for (const [id, n] of before) {
    const kept = now.get(id);
    if (kept && (kept.parent !== n.parent || kept.parent === 0 !== (n.parent === 0))) return undefined;
    if (!kept && now.has(n.parent)) removes.push(`{"op":"remove","id":${id}}`);
  }
  if (!sameOrder(before, now)) return undefined;
  for (const [id, n] of now) {
    const old = before.get(id);
    if (!old) {
      if (before.has(n.parent)) rest.push(`{"op":"add","parent":${n.parent},"after":${n.after},"node":${nested(n)}}`);
    } else if (old.alone !== n.alone) {
      rest.push(`{"op":"update","node":${n.alone}}`);
    }
  }
  return [...removes, ...rest];
}

/**
 * @param {Map<number, Sent>} before
 * @param {Map<number, Sent>} now
 * @returns {boolean} whether the children that stayed are in the order in which they were
 */
function sameOrder(before, now) {
  for (const [id, n] of now) {
    const old = before.get(id);
    if (!old || old.children.length < 2) continue;
    const stayed = old.children.filter(c => now.has(c.id)).map(c => c.id);
    const are = n.children.filter(c => before.has(c.id)).map(c => c.id);
    if (stayed.some((c, i) => c !== are[i])) return false;
  }
  return true;
}

/**
 * @param {Sent} n
 * @returns {string} the JSON of a node with everything below it
 */
function nested(n) {
  return n.children.length === 0 ? n.alone : `${n.alone.slice(0, -1)},"children":[${n.children.map(nested).join(',')}]}`;
}
