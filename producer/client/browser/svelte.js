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

/**
 * @typedef {{id: number, name: string, loc: string, element: Element[], children: Component[], depth: number}} Component
 */

/**
 * The components of a page that a development build of Svelte made, by name and
 * place only: its elements say in which file they are.
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
    /** @type {WeakMap<Element, number>} a component is known by its first element */
    this.ids = new WeakMap();
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
    /** @type {Component} */
    const root = { id: this.idOf(document.documentElement), name: 'page', loc: '', element: [], children: [], depth: 1 };
    /** @type {{element: Element, inside: Component, file: string}[]} */
    const open = [{ element: document.documentElement, inside: root, file: '' }];
    let left = Math.min(MAX_ELEMENTS, this.limits().nodes);
    while (open.length > 0 && left-- > 0) {
      const { element, inside, file } = /** @type {{element: Element, inside: Component, file: string}} */ (open.pop());
      const loc = metaOf(element);
      let at = inside;
      let of = file;
      if (loc && loc.file !== file) {
        at = this.component(element, inside, loc);
        of = loc.file;
      } else if (loc && inside !== root && element.parentElement && metaOf(element.parentElement)?.file !== file) {
        inside.element.push(element);
      }
      for (let c = element.lastElementChild; c; c = c.previousElementSibling) open.push({ element: c, inside: at, file: of });
    }
    return root;
  }

  /**
   * @param {Element} element
   * @param {Component} parent
   * @param {{file: string, line: number}} loc
   * @returns {Component}
   */
  component(element, parent, loc) {
    // Elements side by side that are of one file are of one component.
    const last = parent.children.at(-1);
    if (last && last.loc.startsWith(`${loc.file}:`) && last.element.at(-1) === element.previousElementSibling) {
      last.element.push(element);
      return last;
    }
    if (parent.depth >= MAX_DEPTH) return parent;
    const name = /([^/\\]+?)(?:\.svelte)?$/.exec(loc.file)?.[1] ?? loc.file;
    /** @type {Component} */
    const c = { id: this.idOf(element), name: name.slice(0, 200), loc: `${loc.file}:${loc.line}`, element: [element], children: [], depth: parent.depth + 1 };
    parent.children.push(c);
    return c;
  }

  /**
   * @param {Element} element
   * @returns {number}
   */
  idOf(element) {
    let id = this.ids.get(element);
    if (id === undefined) this.ids.set(element, id = ++this.lastID);
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

/** @param {Component | undefined} c */
function withValues(c) {
  return c && { ...c, values: {}, set: undefined, alive: true };
}

/**
 * @param {any} element
 * @returns {{file: string, line: number} | undefined} where Svelte says that an element is
 */
function metaOf(element) {
  const loc = element.__svelte_meta?.loc;
  return loc && typeof loc.file === 'string' ? { file: loc.file.slice(0, 900), line: Number(loc.line) || 0 } : undefined;
}

/** @returns {boolean} whether this page has elements that Svelte tells of */
export function hasSvelte() {
  const all = document.body?.getElementsByTagName('*') ?? [];
  for (let i = 0; i < Math.min(100, all.length); i++) if (metaOf(all[i])) return true;
  return false;
}
