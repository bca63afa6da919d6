import { SentTree } from '../shared/senttree.js';

/** @typedef {import('../shared/senttree.js').Sent} Sent */
/** @typedef {import('../shared/tree.js').TreeNode} TreeNode */

/** Numbers of these nodes begin behind all that others can have. */
const FIRST_ID = 2 ** 42;
/** How long after a change the document is walked again, in milliseconds. */
const EVERY = 500;
/** How many elements are looked at. */
const MAX_ELEMENTS = 50000;
const MAX_DEPTH = 200;

/** How many blocks around an element are looked through for its components. */
const MAX_BLOCKS = 1000;

/**
 * element are the topmost elements of a component; named says that its own file is known.
 * @typedef {{id: number, name: string, loc: string, element: Element[], children: Component[], depth: number, named: boolean}} Component
 */

/**
 * A block that Svelte was in when it made an element: a component where it is used, or an if, each, render and so on.
 * There is one for each instance.
 * @typedef {{type: string, file: string, line: number, componentTag?: string, parent: Block | null}} Block
 */

/**
 * What Svelte says of an element. Without blocks it is of a Svelte that does not tell them.
 * @typedef {{file: string, line: number, block: Block | null | undefined}} Meta
 */

/**
 * The components of a page that a development build of Svelte made, by name and
 * place only: its elements say in which file they are, and in which components.
 */
export class SvelteTree {
  /**
   * @param {{changed: () => void, limits: () => {nodes: number}, revision: number}} o
   */
  constructor({ changed, limits, revision }) {
    this.limits = limits;
    this.sent = new SentTree(revision);
    this.dirty = true;
    this.lastID = FIRST_ID;
    /** @type {WeakMap<object, number>} a component is known by its block, its mount, or else its first element */
    this.ids = new WeakMap();
    /** @type {WeakMap<Element, Map<string, object>>} what stands for a component that was mounted into an element, by its file */
    this.mounts = new WeakMap();
    /** @type {Map<number, Component>} */
    this.components = new Map();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.observer = new MutationObserver(() => {
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        this.dirty = true;
        changed();
      }, EVERY);
    });
    this.observer.observe(document.documentElement, { childList: true, subtree: true });
  }

  stop() {
    clearTimeout(this.timer);
    this.observer.disconnect();
    this.components.clear();
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
    return this.dirty || this.sent.whole;
  }

  reset() {
    this.sent.whole = true;
  }

  take() {
    this.dirty = false;
    const root = this.walk();
    this.components.clear();
    /** @type {(c: Component, parent: number, after: number) => Sent} */
    const made = (c, parent, after) => {
      this.components.set(c.id, c);
      let last = 0;
      const children = c.children.map(x => {
        const s = made(x, c.id, last);
        last = s.id;
        return s;
      });
      return { id: c.id, name: c.name, object: c, parent, after, alone: JSON.stringify({ id: c.id, name: c.name, ...(c.loc ? { loc: c.loc } : {}) }), children };
    };
    return this.sent.take(made(root, 0, 0), { profile: 'component' });
  }

  /** @returns {Component} the page with its components */
  walk() {
    /** @typedef {{element: Element, inside: Component, file: string, mount: Element}} Open */
    const root = component(this.idOf(document.documentElement), 'page', '', 1);
    const blocks = new Blocks(this, root);
    /** @type {Open[]} */
    const open = [{ element: document.documentElement, inside: root, file: '', mount: document.documentElement }];
    let left = Math.min(MAX_ELEMENTS, this.limits().nodes);
    while (open.length > 0 && left-- > 0) {
      const { element, inside, file, mount } = /** @type {Open} */ (open.pop());
      const meta = metaOf(element);
      let at = inside;
      if (meta && meta.block !== undefined) {
        at = blocks.owner(meta, element, mount);
        if (at !== inside) at.element.push(element);
      } else if (meta && meta.file !== file) {
        at = this.byFile(element, inside, meta);
      } else if (meta && inside !== root && element.parentElement && metaOf(element.parentElement)?.file !== file) {
        inside.element.push(element);
      }
      const next = { inside: at, file: meta?.file ?? file, mount: meta ? mount : element };
      for (let c = element.lastElementChild; c; c = c.previousElementSibling) open.push({ element: c, ...next });
    }
    return root;
  }

  /**
   * The component of an element that tells its file only: elements side by side
   * that are of one file are of one component.
   * @param {Element} element
   * @param {Component} parent
   * @param {Meta} meta
   * @returns {Component}
   */
  byFile(element, parent, { file, line }) {
    const last = parent.children.at(-1);
    if (last && last.loc.startsWith(`${file}:`) && last.element.at(-1) === element.previousElementSibling) {
      last.element.push(element);
      return last;
    }
    if (parent.depth >= MAX_DEPTH) return parent;
    const c = component(this.idOf(element), nameOf(file), `${file}:${line}`, parent.depth + 1);
    c.element.push(element);
    parent.children.push(c);
    return c;
  }

  /**
   * @param {Element} mount
   * @param {string} file
   * @returns {object} what stands for a component of a file that was mounted into an element
   */
  mounted(mount, file) {
    let files = this.mounts.get(mount);
    if (!files) this.mounts.set(mount, files = new Map());
    let token = files.get(file);
    if (!token) files.set(file, token = {});
    return token;
  }

  /**
   * @param {object} key
   * @returns {number}
   */
  idOf(key) {
    let id = this.ids.get(key);
    if (id === undefined) this.ids.set(key, id = ++this.lastID);
    return id;
  }

  /**
   * @param {number} id
   * @returns {TreeNode | undefined}
   */
  get(id) {
    return /** @type {any} */ (withValues(this.components.get(id)));
  }

  /** @returns {Iterable<TreeNode>} */
  nodes() {
    return /** @type {any} */ ([...this.components.values()].map(withValues));
  }

  /** @returns {undefined} nothing can be set */
  setter() {
    return undefined;
  }

  /**
   * @param {number} id
   * @returns {object | undefined} the first element of the component
   */
  live(id) {
    return this.components.get(id)?.element[0];
  }

  /** @returns {undefined} an element is shown as what it is */
  nodeOf() {
    return undefined;
  }
}

/** The components of one walk that are known by the blocks that Svelte tells. */
class Blocks {
  /**
   * @param {SvelteTree} tree
   * @param {Component} page
   */
  constructor(tree, page) {
    this.tree = tree;
    this.page = page;
    /** @type {Map<object, Component>} by block, or by what stands for a mount */
    this.known = new Map();
    /** @type {Map<string, Component>} the newest that was mounted of a file */
    this.mounts = new Map();
  }

  /**
   * @param {Meta} meta
   * @param {Element} element
   * @param {Element} mount the next element above that Svelte did not make
   * @returns {Component} the component that an element is of
   */
  owner(meta, element, mount) {
    const { block, rendered } = componentBlock(meta.block);
    if (!block) {
      const c = this.mounted(mount, meta.file, meta.line);
      if (c !== this.page) this.mounts.set(meta.file, c);
      return c;
    }
    const c = this.used(block, mount);
    // What a component renders for others is of the file of those.
    if (!rendered && !c.named && c !== this.page) {
      c.named = true;
      c.name = nameOf(meta.file);
      c.loc = `${meta.file}:${meta.line}`;
    }
    return c;
  }

  /**
   * @param {Block} block of a component
   * @param {Element} mount
   * @returns {Component}
   */
  used(block, mount) {
    let c = this.known.get(block);
    if (c) return c;
    const above = componentBlock(block.parent).block;
    const file = textOf(block.file);
    // A component that has no element of its own is told by what it uses.
    const parent = above ? this.used(above, mount) : this.mounts.get(file) ?? this.mounted(mount, file, 0);
    c = this.below(parent, block, textOf(block.componentTag), `${file}:${Number(block.line) || 0}`);
    this.known.set(block, c);
    return c;
  }

  /**
   * @param {Element} mount
   * @param {string} file
   * @param {number} line
   * @returns {Component}
   */
  mounted(mount, file, line) {
    const token = this.tree.mounted(mount, file);
    let c = this.known.get(token);
    if (!c) {
      c = this.below(this.page, token, nameOf(file), file && (line ? `${file}:${line}` : file));
      c.named = true;
      this.known.set(token, c);
    }
    return c;
  }

  /**
   * @param {Component} parent
   * @param {object} key
   * @param {string} name
   * @param {string} loc
   * @returns {Component}
   */
  below(parent, key, name, loc) {
    if (parent.depth >= MAX_DEPTH) return parent;
    const c = component(this.tree.idOf(key), name || 'component', loc, parent.depth + 1);
    parent.children.push(c);
    return c;
  }
}

/**
 * @param {Block | null | undefined} block
 * @returns {{block: Block | undefined, rendered: boolean}} the next component around, and whether a snippet is between
 */
function componentBlock(block) {
  let rendered = false;
  for (let i = 0; block && typeof block === 'object' && i < MAX_BLOCKS; i++, block = block.parent) {
    if (block.type === 'component') return { block, rendered };
    if (block.type === 'render') rendered = true;
  }
  return { block: undefined, rendered };
}

/**
 * @param {number} id
 * @param {string} name
 * @param {string} loc
 * @param {number} depth
 * @returns {Component}
 */
function component(id, name, loc, depth) {
  return { id, name, loc, element: [], children: [], depth, named: false };
}

/**
 * @param {string} file
 * @returns {string} the name of the component in a file
 */
function nameOf(file) {
  return (/([^/\\]+?)(?:\.svelte)?$/.exec(file)?.[1] ?? file).slice(0, 200);
}

/**
 * @param {unknown} v
 * @returns {string}
 */
function textOf(v) {
  return typeof v === 'string' ? v.slice(0, 900) : '';
}

/** @param {Component | undefined} c */
function withValues(c) {
  return c && { ...c, values: {}, set: undefined, alive: true };
}

/**
 * @param {any} element
 * @returns {Meta | undefined} where Svelte says that an element is
 */
function metaOf(element) {
  const meta = element.__svelte_meta;
  const loc = meta?.loc;
  return loc && typeof loc.file === 'string' ? { file: textOf(loc.file), line: Number(loc.line) || 0, block: meta.parent } : undefined;
}

/** @returns {boolean} whether this page has elements that Svelte tells of */
export function hasSvelte() {
  const all = document.body?.getElementsByTagName('*') ?? [];
  for (let i = 0; i < Math.min(100, all.length); i++) if (metaOf(all[i])) return true;
  return false;
}
