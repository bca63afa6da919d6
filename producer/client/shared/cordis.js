import { collect, details, isContext, servicesOf, unshadowed } from './contexts.js';
import { randomText } from './identity.js';
import { SentTree } from './senttree.js';
import { wellFormed } from './text.js';

/** @typedef {import('./contexts.js').Found} Found */
/** @typedef {import('./tree.js').TreeRecord} TreeRecord */
/** @typedef {import('./senttree.js').Sent} Sent */

/** Numbers of Cordis nodes begin behind all that components can have. */
const FIRST_ID = 2 ** 40;

/** The events of Cordis after which the tree may be another one. */
const EVENTS = ['internal/plugin', 'internal/status', 'internal/listener'];

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
    this.sent = new SentTree(revision);
    this.registry = randomText(16);
    this.truncated = false;
    this.dirty = true;
    this.lastID = FIRST_ID;
    /** @type {WeakMap<object, number>} an object keeps its number as long as it lives */
    this.ids = new WeakMap();
    /** @type {WeakMap<object, string>} the JSON of nodes, which stays as it is unless they tell more */
    this.texts = new WeakMap();
    /** @type {WeakMap<object, object>} who told the state of a fiber last */
    this.tellers = new WeakMap();
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
      this.undos.push(this.root.on(name, (/** @type {unknown} */ v) => {
        if (name === 'internal/status') this.faults.run(() => this.heard(v));
        noticed();
      }, { global: true }));
    }
  }

  /**
   * Remembers who told a fiber's state last. When the result of ctx.plugin is
   * restarted, Cordis writes the new state and error to it and not to the fiber.
   * @param {any} v
   */
  heard(v) {
    if (v !== null && typeof v === 'object') this.tellers.set(behind(v), v);
  }

  /** Follows the runtime no more. */
  stop() {
    for (const undo of this.undos) this.faults.run(undo);
    this.undos = [];
    this.sent.nodes.clear();
  }

  get revision() {
    return this.sent.revision;
  }

  set revision(n) {
    this.sent.revision = n;
  }

  get pending() {
    return this.dirty || this.sent.whole;
  }

  reset() {
    this.sent.whole = true;
  }

  /** @returns {TreeRecord[]} */
  take() {
    this.dirty = false;
    const root = this.build();
    return this.sent.take(root, { profile: this.more ? 'component' : 'cordis', registry: this.registry, truncated: this.truncated });
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
    const known = this.more ? undefined : this.texts.get(f.object);
    if (known !== undefined) return known;
    const text = this.write(id, f, services);
    if (!this.more) this.texts.set(f.object, text);
    return text;
  }

  /**
   * @param {number} id
   * @param {Found} f
   * @param {Map<object, string[]>} services
   * @returns {string}
   */
  write(id, f, services) {
    const attrs = f.kind === 'fiber' ? [['uid', String(f.uid)]] : [];
    if (this.more) attrs.push(...details(f, services, this.tellers.get(f.object)).map(([k, v]) => [k, wellFormed(v)]));
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
    return this.sent.nodes.get(id)?.object;
  }

  /**
   * @param {object} v
   * @returns {{id: number, name: string} | undefined}
   */
  nodeOf(v) {
    const id = this.ids.get(v) ?? this.ids.get(behind(v));
    return id === undefined ? undefined : this.sent.nodes.get(id);
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
