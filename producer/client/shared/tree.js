import { cut, wellFormed } from './text.js';
import { property } from './read.js';
import { alone, nested } from './nodetext.js';

/** The version of snapshots, as package subjects/tree (Go) has it. */
const SCHEMA_VERSION = 1;
/** How large one record gets, in UTF-16 units of JSON, before the tree goes in parts. */
const RECORD_SIZE = 100 << 10;
const RECORD_NODES = 1000;
/** After how many changed nodes it is asked whether the time for them is spent. */
const ASK_EVERY = 16;
/** How many values one call may set. */
const MAX_VALUES = 100;

/**
 * @typedef {object} TreeNode
 * @property {number} id never used twice
 * @property {string} name
 * @property {Record<string, unknown>} values
 * @property {TreeNode | undefined} parent
 * @property {number} depth
 * @property {TreeNode | undefined} first
 * @property {TreeNode | undefined} last
 * @property {TreeNode | undefined} prev
 * @property {TreeNode | undefined} next
 * @property {boolean} alive
 * @property {boolean} sent whether the reader has it
 * @property {boolean} dirty whether it is among those that changed
 * @property {unknown} set what sets values: a function of name and value, or an object of functions
 * @property {unknown} element the page's element, several of them, or a function that returns them
 * @property {string} loc where it is defined, as file:line
 */

/** Which component somebody looks at through its values. @type {WeakMap<object, TreeNode>} */
const shown = new WeakMap();

/**
 * A record of the tree plane whose data is JSON text already.
 * @typedef {{topic: string, data: string}} TreeRecord
 */

/**
 * What a page may say of a component besides its values.
 * @typedef {object} Extras
 * @property {unknown} [set]
 * @property {unknown} [element]
 * @property {unknown} [loc]
 */

/**
 * The component tree of a page, and what of it changed since it was last taken.
 * Changes between two takes are merged: a node that came and went is never
 * sent, one that changed a hundred times is sent once.
 */
export class Tree {
  /** @param {() => {nodes: number, depth: number}} limits */
  constructor(limits) {
    this.limits = limits;
    this.root = node(1, 'page', undefined);
    this.lastID = 1;
    this.size = 1;
    this.revision = 0;
    this.commit = 0;
    this.truncated = false;
    /** Whether the reader needs everything. */
    this.whole = true;
    /** @type {TreeNode[]} */
    this.added = [];
    /** @type {TreeNode[]} nodes whose values changed, each once; some may be gone since */
    this.changed = [];
    /** @type {number[]} */
    this.removed = [];
    /** Whether there ever was a component; a page without any has no tree. */
    this.used = false;
    /** @type {Map<number, TreeNode>} */
    this.byID = new Map([[1, this.root]]);
  }

  /**
   * @param {number} id
   * @returns {TreeNode | undefined}
   */
  get(id) {
    return this.byID.get(id);
  }

  /**
   * The live object of a component is the one that holds its values.
   * @param {number} id
   * @returns {object | undefined}
   */
  live(id) {
    const n = this.byID.get(id);
    if (n) shown.set(n.values, n);
    return n?.values;
  }

  /**
   * @param {object} v
   * @returns {{id: number, name: string} | undefined} the component whose live object it is
   */
  nodeOf(v) {
    const n = shown.get(v);
    return n?.alive ? n : undefined;
  }

  /** @returns {Iterable<TreeNode>} */
  nodes() {
    return this.byID.values();
  }

  /**
   * @param {TreeNode} n
   * @param {string} symbol
   * @returns {((value: unknown) => unknown) | undefined} what sets a value; undefined if nothing does
   */
  setter(n, symbol) {
    if (!Object.hasOwn(n.values, symbol)) return undefined;
    const { set } = n;
    if (typeof set === 'function') return v => set(symbol, v);
    if (set === null || typeof set !== 'object' || !Object.hasOwn(set, symbol)) return undefined;
    const f = /** @type {any} */ (property(set, symbol));
    return typeof f === 'function' ? v => f.call(set, v) : undefined;
  }

  /**
   * Adds a component behind its siblings.
   * @param {unknown} name
   * @param {unknown} values
   * @param {TreeNode} [parent] default: the root
   * @param {Extras} [extras]
   * @returns {TreeNode | undefined} undefined beyond the limits, and below a parent that is gone
   */
  add(name, values, parent = this.root, extras = {}) {
    const { nodes, depth } = this.limits();
    if (!parent.alive) return undefined;
    if (this.size >= nodes || parent.depth >= depth) {
      this.truncated = true;
      return undefined;
    }
    const n = node(++this.lastID, cut(wellFormed(String(name)), 200) || 'Anonymous', parent);
    copyValues(n.values, values);
    n.set = extras.set;
    n.element = extras.element;
    n.loc = typeof extras.loc === 'string' ? cut(wellFormed(extras.loc), 1000) : '';
    this.byID.set(n.id, n);
    n.prev = parent.last;
    if (parent.last) parent.last.next = n;
    else parent.first = n;
    parent.last = n;
    this.size++;
    this.used = true;
    if (!this.whole) this.added.push(n);
    this.bound();
    return n;
  }

  /**
   * Changes the named values of a component and leaves the others.
   * @param {TreeNode} n
   * @param {unknown} values
   */
  update(n, values) {
    if (!n.alive) return;
    if (!copyValues(n.values, values) || !n.sent || n.dirty || this.whole) return;
    n.dirty = true;
    this.changed.push(n);
  }

  /**
   * Removes a component and everything below it.
   * @param {TreeNode} n
   */
  remove(n) {
    if (!n.alive || n === this.root) return;
    const p = /** @type {TreeNode} */ (n.parent);
    if (n.prev) n.prev.next = n.next;
    else p.first = n.next;
    if (n.next) n.next.prev = n.prev;
    else p.last = n.prev;
    if (n.sent && !this.whole) this.removed.push(n.id);
    walk(n, x => {
      x.alive = false;
      this.byID.delete(x.id);
      this.size--;
    });
    this.bound();
  }

  /** While nobody takes changes, what came and went must not pile up: a snapshot is smaller then. */
  bound() {
    if (this.added.length + this.removed.length > 2 * this.size + 1000) this.reset();
  }

  /** @returns {boolean} whether the page shows nothing itself */
  get adoptable() {
    return !this.used;
  }

  /** @returns {boolean} whether there is anything to take */
  get pending() {
    if (!this.used) return false;
    return this.whole || this.added.length > 0 || this.changed.length > 0 || this.removed.length > 0;
  }

  /** The reader lost the tree: everything is sent with the next take. */
  reset() {
    this.whole = true;
    this.clear();
  }

  /**
   * Returns the records that tell the reader what changed. When the time is
   * spent, nodes whose values changed may be left for the next take.
   * @param {() => boolean} [spent]
   * @returns {TreeRecord[]}
   */
  take(spent) {
    if (!this.pending) return [];
    const structure = this.whole ? undefined : this.structure();
    return structure ? this.takeOps(structure, spent) : this.takeSnapshot();
  }

  /** @returns {string[] | undefined} the ops for nodes that came and went; undefined where a snapshot is better */
  structure() {
    const ops = this.removed.map(id => `{"op":"remove","id":${id}}`);
    let size = 0;
    for (const n of this.added) {
      // A node whose parent is new as well goes with its parent.
      if (!n.alive || n.sent || !n.parent?.sent) continue;
      const op = `{"op":"add","parent":${n.parent.id},"after":${n.prev?.id ?? 0},"node":${nested(n)}}`;
      size += op.length;
      if (size > 2 * RECORD_SIZE) return undefined;
      ops.push(op);
    }
    return ops;
  }

  /**
   * @param {string[]} ops those for nodes that came and went
   * @param {() => boolean} [spent]
   * @returns {TreeRecord[]} none if all changes cancel out
   */
  takeOps(ops, spent) {
    this.added = [];
    this.removed = [];
    let n = 0;
    while (n < this.changed.length) {
      const node = this.changed[n++];
      node.dirty = false;
      if (node.alive) ops.push(`{"op":"update","node":${alone(node)}}`);
      if (n % ASK_EVERY === 0 && spent?.()) break;
    }
    this.changed = this.changed.slice(n);
    /** @type {TreeRecord[]} */
    const out = [];
    let first = 0;
    let size = 0;
    for (let i = 0; i < ops.length; i++) {
      size += ops[i].length + 1;
      if (i + 1 < ops.length && size + ops[i + 1].length <= RECORD_SIZE) continue;
      out.push({ topic: 'ops', data: `{"revision":${++this.revision},"commit":${++this.commit},"ops":[${ops.slice(first, i + 1).join(',')}]${this.truncated ? ',"truncated":true' : ''}}` });
      first = i + 1;
      size = 0;
    }
    return out;
  }

  /** @returns {TreeRecord[]} */
  takeSnapshot() {
    this.clear();
    this.whole = false;
    const head = `"version":${SCHEMA_VERSION},"profile":"component","revision":${++this.revision}${this.truncated ? ',"truncated":true' : ''}`;
    if (this.size <= RECORD_NODES) {
      const root = nested(this.root);
      if (root.length <= RECORD_SIZE) return [{ topic: 'snapshot', data: `{${head},"root":${root}}` }];
    }
    const out = [{ topic: 'begin', data: `{${head}}` }];
    /** @type {string[]} */
    let part = [];
    let size = 0;
    const flush = () => {
      if (part.length > 0) out.push({ topic: 'nodes', data: `{"revision":${this.revision},"nodes":[${part.join(',')}]}` });
      part = [];
      size = 0;
    };
    walk(this.root, n => {
      const text = `{${n.parent ? `"parent":${n.parent.id},` : ''}"node":${alone(n)}}`;
      n.sent = true;
      if (size + text.length > RECORD_SIZE || part.length >= RECORD_NODES) flush();
      part.push(text);
      size += text.length;
    });
    flush();
    out.push({ topic: 'commit', data: `{"revision":${this.revision},"count":${this.size}}` });
    return out;
  }

  clear() {
    for (const n of this.changed) n.dirty = false;
    this.added = [];
    this.changed = [];
    this.removed = [];
  }
}

/**
 * @param {number} id
 * @param {string} name
 * @param {TreeNode | undefined} parent
 * @returns {TreeNode}
 */
function node(id, name, parent) {
  return { id, name, parent, values: Object.create(null), depth: (parent?.depth ?? 0) + 1, first: undefined, last: undefined, prev: undefined, next: undefined, alive: true, sent: false, dirty: false, set: undefined, element: undefined, loc: '' };
}

/**
 * Calls f for n and everything below it, parents first. It does not recurse,
 * since a page may have a deep tree and a full stack.
 * @param {TreeNode} n
 * @param {(n: TreeNode) => void} f
 */
function walk(n, f) {
  /** @type {TreeNode | undefined} */
  let at = n;
  while (at) {
    f(at);
    if (at.first) {
      at = at.first;
      continue;
    }
    while (at && at !== n && !at.next) at = at.parent;
    at = !at || at === n ? undefined : at.next;
  }
}

/**
 * Copies the own values of an object, so that the page's later changes of it
 * are not half seen. Accessors are not called.
 * @param {Record<string, unknown>} into
 * @param {unknown} values
 * @returns {boolean} whether anything may be different now; what is in an object may always be
 */
function copyValues(into, values) {
  if (values === null || typeof values !== 'object') return false;
  let different = false;
  let n = 0;
  for (const name of Object.keys(values)) {
    if (++n > MAX_VALUES) break;
    const d = Object.getOwnPropertyDescriptor(values, name);
    if (!d) continue;
    const v = 'value' in d ? d.value : d.get;
    if (!different) different = v !== null && typeof v === 'object' || typeof v === 'function' || !Object.is(v, into[name]) || !(name in into);
    into[name] = v;
  }
  return different;
}
