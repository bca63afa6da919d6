/** @typedef {import('./tree.js').TreeRecord} TreeRecord */

/** How large one record gets, in UTF-16 units of JSON, before the tree goes in parts. */
const RECORD_SIZE = 100 << 10;

/**
 * A node as it was sent.
 * @typedef {object} Sent
 * @property {number} id
 * @property {string} name
 * @property {any} object what it stands for
 * @property {number} parent
 * @property {number} after the node before it, 0 for none
 * @property {string} alone its JSON without children
 * @property {Sent[]} children
 */

/**
 * A tree as the reader has it. It is given the whole tree each time, and says
 * what is different.
 */
export class SentTree {
  /** @param {number} revision the revision that was sent last */
  constructor(revision) {
    this.revision = revision;
    this.commit = 0;
    this.truncated = false;
    /** Whether the reader needs everything. */
    this.whole = true;
    /** @type {Map<number, Sent>} */
    this.nodes = new Map();
  }

  /**
   * @param {Sent} root
   * @param {{profile: string, registry?: string, truncated?: boolean}} head
   * @returns {TreeRecord[]} none when nothing is different
   */
  take(root, { profile, registry, truncated = false }) {
    const now = index(root);
    const ops = this.whole ? undefined : difference(this.nodes, now);
    const same = ops?.length === 0 && truncated === this.truncated;
    this.nodes = now;
    this.truncated = truncated;
    if (same) return [];
    this.revision++;
    const cut = truncated ? ',"truncated":true' : '';
    if (ops) {
      const text = `{"revision":${this.revision},"commit":${++this.commit},"ops":[${ops.join(',')}]${cut}}`;
      if (text.length <= 2 * RECORD_SIZE) return [{ topic: 'ops', data: text }];
    }
    this.whole = false;
    return this.snapshot(root, `"version":1,"profile":"${profile}","revision":${this.revision}${registry ? `,"registry":"${registry}"` : ''}${cut}`);
  }

  /**
   * @param {Sent} root
   * @param {string} head
   * @returns {TreeRecord[]}
   */
  snapshot(root, head) {
    const text = nested(root);
    if (text.length <= RECORD_SIZE) return [{ topic: 'snapshot', data: `{${head},"root":${text}}` }];
    const out = [{ topic: 'begin', data: `{${head}}` }];
    /** @type {string[]} */
    let part = [];
    let size = 0;
    const flush = () => {
      if (part.length > 0) out.push({ topic: 'nodes', data: `{"revision":${this.revision},"nodes":[${part.join(',')}]}` });
      part = [];
      size = 0;
    };
    for (const n of this.nodes.values()) {
      const node = `{${n.parent ? `"parent":${n.parent},` : ''}"node":${n.alone}}`;
      if (size + node.length > RECORD_SIZE) flush();
      part.push(node);
      size += node.length;
    }
    flush();
    out.push({ topic: 'commit', data: `{"revision":${this.revision},"count":${this.nodes.size}}` });
    return out;
  }
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
