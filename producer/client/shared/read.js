/**
 * Reading of values that belong to the page: accessors are never called, and
 * what only looks like a built-in object is not taken for one.
 */

import { ellipsis, wellFormed } from './text.js';

/**
 * Reads an own property without calling an accessor.
 * @param {object} v
 * @param {string} key
 * @returns {unknown}
 */
export function property(v, key) {
  const d = Object.getOwnPropertyDescriptor(v, key);
  if (!d) return undefined;
  if ('value' in d) return d.value;
  const f = () => undefined;
  Object.defineProperty(f, 'name', { value: `${d.get ? 'get' : 'set'} ${key}` });
  return f;
}

/**
 * Reads a string property of an object or its prototypes without calling an accessor.
 * @param {object} v
 * @param {string} key
 * @returns {string | undefined}
 */
export function inherited(v, key) {
  for (let o = v; o; o = Object.getPrototypeOf(o)) {
    const d = Object.getOwnPropertyDescriptor(o, key);
    if (d) return typeof d.value === 'string' ? wellFormed(d.value) : undefined;
  }
  return undefined;
}

/**
 * @param {object} v
 * @param {string} key
 * @returns {boolean} whether v has an own property of the name
 */
export function ownData(v, key) {
  return Object.getOwnPropertyDescriptor(v, key) !== undefined;
}

/**
 * The name of an object's class, as engines tell it: a prototype that names
 * itself, as Map.prototype does, has that name and not its own prototype's.
 * @param {object} v
 * @returns {string} empty where it is not known
 */
export function constructorName(v) {
  if (v === Array.prototype) return 'Array';
  const tag = Object.getOwnPropertyDescriptor(v, Symbol.toStringTag)?.value;
  if (typeof tag === 'string' && tag !== '' && ownData(v, 'constructor')) return ellipsis(tag, 1000);
  for (let o = Object.getPrototypeOf(v); o; o = Object.getPrototypeOf(o)) {
    const d = Object.getOwnPropertyDescriptor(o, 'constructor');
    if (d && typeof d.value === 'function') return functionName(d.value);
  }
  return '';
}

/**
 * @param {Function} f
 * @returns {string}
 */
export function functionName(f) {
  const d = Object.getOwnPropertyDescriptor(f, 'name');
  return d && typeof d.value === 'string' ? ellipsis(d.value, 1000) : '';
}

/** The message of an error of the platform, such as that of an abort, which is behind an accessor of the platform's own. */
const domMessage = typeof DOMException === 'function' ? getter(DOMException.prototype, 'message') : () => undefined;

/**
 * @param {unknown} e
 * @returns {string} what a thrown value says
 */
export function messageOf(e) {
  try {
    if (e !== null && typeof e === 'object') {
      const own = inherited(e, 'message') ?? tryCall(domMessage, e);
      return typeof own === 'string' ? ellipsis(own, 1000) : 'a value without a message was thrown';
    }
    return ellipsis(String(e), 1000);
  } catch {
    return 'a value without a message was thrown';
  }
}

/**
 * The stack of an error. Engines store it as a value or behind an accessor of
 * their own, which is the one accessor that is called.
 * @param {Error} e
 * @returns {string | undefined}
 */
export function errorStack(e) {
  try {
    const s = e.stack;
    return typeof s === 'string' ? wellFormed(s) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @template T
 * @param {Iterator<T>} it
 * @param {number} n
 * @returns {T[]} the first n values
 */
export function first(it, n) {
  const out = [];
  for (let i = 0; i < n; i++) {
    const { value, done } = it.next();
    if (done) break;
    out.push(value);
  }
  return out;
}

/**
 * @param {Iterator<unknown>} it
 * @returns {number}
 */
export function count(it) {
  let n = 0;
  while (!it.next().done) n++;
  return n;
}

/**
 * @param {object} o
 * @param {PropertyKey} key
 * @returns {(this: any) => any}
 */
export function getter(o, key) {
  return /** @type {any} */ (Object.getOwnPropertyDescriptor(o, key))?.get ?? (() => undefined);
}

/**
 * Calls an intrinsic on a value that may only look like one of its kind.
 * @param {(this: any) => any} f
 * @param {unknown} v
 * @returns {any} undefined if it refuses
 */
export function tryCall(f, v) {
  try {
    return f.call(v);
  } catch {
    return undefined;
  }
}
