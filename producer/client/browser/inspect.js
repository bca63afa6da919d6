/**
 * What a page knows of its values besides what the language tells.
 */

const nodeType = Object.getOwnPropertyDescriptor(Node.prototype, 'nodeType')?.get;
const nodeName = Object.getOwnPropertyDescriptor(Node.prototype, 'nodeName')?.get;
const getAttribute = Element.prototype.getAttribute;

/**
 * How a node is written in a console: "div#id.class".
 * @param {object} v
 * @returns {string | undefined} undefined for what is no node
 */
export function describeNode(v) {
  if (!(v instanceof Node)) return undefined;
  try {
    const type = nodeType?.call(v);
    const name = String(nodeName?.call(v));
    if (type !== 1) return type === 10 ? `<!DOCTYPE ${name}>` : name;
    const id = getAttribute.call(v, 'id');
    const classes = (getAttribute.call(v, 'class') ?? '').split(/\s+/).filter(Boolean);
    return (name.toLowerCase() + (id ? `#${id}` : '') + classes.map(c => `.${c}`).join('')).slice(0, 1000);
  } catch {
    // A prototype looks like a node and is none.
    return undefined;
  }
}

/**
 * A page cannot tell a Proxy from what is behind it.
 * @param {object} v
 * @returns {boolean}
 */
export function isProxy(v) {
  void v;
  return false;
}

/** Global accessors of the platform whose reading has no effect. */
export const quiet = Object.freeze(['window', 'self', 'document', 'location', 'navigator', 'history', 'screen', 'top', 'parent', 'frames', 'performance', 'crypto', 'customElements']);

/**
 * Declares names as a script with let would, since eval keeps what it declares to itself.
 * @param {string[]} names
 * @returns {string[]} the names that could not be declared so
 */
export function declare(names) {
  return names.filter(name => {
    if (declared.has(name)) return false;
    if (taken(name) || !inject(`let ${name}`)) return true;
    declared.add(name);
    return false;
  });
}

/**
 * Looks whether a script could not declare a name any more: the browser would
 * tell the page of the error.
 * @param {string} name
 * @returns {boolean}
 */
function taken(name) {
  if (name in globalThis) return Object.getOwnPropertyDescriptor(globalThis, name)?.configurable === false;
  try {
    (0, eval)(name);
    return true;
  } catch (e) {
    // A name that has no value yet has one that is to come.
    return !(e instanceof ReferenceError) || /before init/.test(e.message);
  }
}

/**
 * Runs a script in an element of its own.
 * @param {string} code
 * @returns {boolean} whether it ran to its end
 */
function inject(code) {
  const script = document.createElement('script');
  const mark = `natscope:${Math.random()}`;
  // A page that has the name already, or lets no scripts in, is not to hear of it.
  const quietly = (/** @type {Event} */ e) => {
    e.stopImmediatePropagation();
    e.preventDefault();
  };
  addEventListener('error', quietly, true);
  try {
    script.nonce = /** @type {HTMLElement | null} */ (document.querySelector('script[nonce]'))?.nonce ?? '';
    script.textContent = `${code};this[${JSON.stringify(mark)}]=1`;
    (document.head ?? document.documentElement).append(script);
    script.remove();
  } catch {
    // Trusted types, for example.
  } finally {
    removeEventListener('error', quietly, true);
  }
  const ran = mark in globalThis;
  delete (/** @type {any} */ (globalThis)[mark]);
  return ran;
}

/** @type {Set<string>} */
const declared = new Set();

/** @returns {Record<string, unknown>} functions that only code from a console sees */
export function commandLine() {
  return {
    $: (/** @type {string} */ selector, /** @type {ParentNode} */ from = document) => from.querySelector(selector),
    $$: (/** @type {string} */ selector, /** @type {ParentNode} */ from = document) => Array.from(from.querySelectorAll(selector)),
    $x: (/** @type {string} */ path, /** @type {Node} */ from = document) => {
      const found = document.evaluate(path, from, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE);
      return Array.from({ length: found.snapshotLength }, (_, i) => found.snapshotItem(i));
    },
  };
}

/** @returns {{usedSize: number, totalSize: number} | undefined} */
export function heap() {
  const memory = /** @type {any} */ (performance).memory;
  return memory ? { usedSize: memory.usedJSHeapSize, totalSize: memory.totalJSHeapSize } : undefined;
}
