/**
 * What kind of thing a live value is, in the words of the inspector's
 * RemoteObject. Looking runs none of the page's code, with one exception: a
 * Proxy cannot be told from its target in a page, so its traps run.
 */

import { constructorName, errorStack, functionName, getter, inherited, tryCall } from './read.js';
import { cleanStack } from './stack.js';
import { cut, ellipsis } from './text.js';

/**
 * @typedef {object} Kind
 * @property {'object' | 'function' | 'undefined' | 'string' | 'number' | 'boolean' | 'symbol' | 'bigint'} type
 * @property {string} [subtype]
 * @property {string} [className]
 * @property {string} [description]
 */

/**
 * What an environment knows of values besides what the language tells.
 * @typedef {object} Host
 * @property {(v: object) => string | undefined} describeNode
 *   how a node of a document is written, undefined for what is none
 * @property {(v: object) => boolean} isProxy whether v is known to be a Proxy
 */

/** An entry of a Map or a Set, as it is shown below [[Entries]]. */
export class Entry {
  /** @param {{key?: unknown, value: unknown}} fields */
  constructor(fields) {
    Object.assign(this, fields);
    entries.add(this);
  }
}

/** Which objects are entries: asking for their class would run a Proxy's trap. @type {WeakSet<object>} */
const entries = new WeakSet();

/**
 * @param {object} v
 * @returns {boolean}
 */
export function isEntry(v) {
  return entries.has(v);
}

/** How much of a function's source, and of an error's stack, is sent. */
const MAX_SOURCE = 10000;

const functionText = Function.prototype.toString;
const dateText = Date.prototype.toString;
const dateTime = Date.prototype.getTime;
const mapSize = getter(Map.prototype, 'size');
const setSize = getter(Set.prototype, 'size');
const weakMapHas = WeakMap.prototype.has;
const weakSetHas = WeakSet.prototype.has;
const regexpSource = getter(RegExp.prototype, 'source');
const bufferLength = getter(ArrayBuffer.prototype, 'byteLength');
const viewLength = getter(DataView.prototype, 'byteLength');
const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const typedName = getter(typedArray, Symbol.toStringTag);
const typedLength = getter(typedArray, 'length');
const generator = Object.getPrototypeOf(Object.getPrototypeOf((function* () {})()));
const iterators = [new Map().entries(), new Set().values(), [][Symbol.iterator](), ''[Symbol.iterator]()].map(x => Object.getPrototypeOf(x));
const isError = /** @type {((v: unknown) => boolean) | undefined} */ (/** @type {any} */ (Error).isError);

/**
 * @param {unknown} v
 * @param {Host} host
 * @returns {Kind}
 */
export function kindOf(v, host) {
  switch (typeof v) {
    case 'undefined': return { type: 'undefined' };
    case 'string': return { type: 'string' };
    case 'boolean': return { type: 'boolean' };
    case 'number': return { type: 'number', description: Object.is(v, -0) ? '-0' : String(v) };
    case 'bigint': return { type: 'bigint', description: `${v}n` };
    case 'symbol': return { type: 'symbol', description: v.toString() };
    case 'function': return kindOfFunction(v, host);
  }
  if (v === null) return { type: 'object', subtype: 'null' };
  try {
    const o = /** @type {object} */ (v);
    if (host.isProxy(o)) return { type: 'object', subtype: 'proxy', className: 'Proxy', description: 'Proxy' };
    return kindOfExotic(o, host) ?? kindOfCollection(o) ?? kindOfPlain(o);
  } catch {
    // A Proxy whose traps throw, or a revoked one.
    return { type: 'object', className: 'Object', description: 'Object' };
  }
}

/**
 * @param {Function} f
 * @param {Host} host
 * @returns {Kind}
 */
function kindOfFunction(f, host) {
  try {
    if (host.isProxy(f)) return { type: 'function', subtype: 'proxy', className: 'Proxy', description: 'Proxy' };
    return { type: 'function', className: constructorName(f) || 'Function', description: cut(functionText.call(f), MAX_SOURCE) };
  } catch {
    return { type: 'function', className: 'Function', description: `function ${tryCall(functionNameOf, f) ?? ''}() { … }` };
  }
}

/** @this {Function} */
function functionNameOf() {
  return functionName(this);
}

/**
 * @param {object} v
 * @param {Host} host
 * @returns {Kind | undefined}
 */
function kindOfExotic(v, host) {
  if (isEntry(v)) return { type: 'object', subtype: 'internal#entry', className: 'Object', description: entryText(/** @type {any} */ (v), host) };
  if (Array.isArray(v)) return { type: 'object', subtype: 'array', className: constructorName(v) || 'Array', description: `${constructorName(v) || 'Array'}(${v.length})` };
  const node = host.describeNode(v);
  if (node !== undefined) return { type: 'object', subtype: 'node', className: constructorName(v) || 'Node', description: node };
  if (looksLikeError(v)) return { type: 'object', subtype: 'error', className: constructorName(v) || 'Error', description: errorText(v) };
  if (tryCall(dateTime, v) !== undefined) return { type: 'object', subtype: 'date', className: constructorName(v) || 'Date', description: dateText.call(v) };
  if (v !== RegExp.prototype && tryCall(regexpSource, v) !== undefined) {
    return { type: 'object', subtype: 'regexp', className: constructorName(v) || 'RegExp', description: regexpText(v) };
  }
  return undefined;
}

/**
 * @param {object} v
 * @returns {boolean}
 */
function looksLikeError(v) {
  return isError ? isError(v) : v instanceof Error;
}

/**
 * @param {object} v
 * @returns {string} the error's stack, which begins with its name and message
 */
export function errorText(v) {
  const head = errorHead(v);
  // Formatting a stack would call accessors of these names.
  if (inherited(v, 'message') === undefined || inherited(v, 'name') === undefined) return head;
  const stack = errorStack(/** @type {Error} */ (v));
  if (!stack) return head;
  const text = cleanStack(stack);
  // Some engines' stacks hold frames only.
  return cut(text.includes(inherited(v, 'message') ?? '') ? text : `${head}\n${text}`, MAX_SOURCE);
}

/**
 * @param {object} v
 * @returns {string} name and message
 */
function errorHead(v) {
  const name = inherited(v, 'name') || constructorName(v) || 'Error';
  const message = inherited(v, 'message');
  return cut(message ? `${name}: ${message}` : name, MAX_SOURCE);
}

/**
 * @param {object} v
 * @returns {string}
 */
function regexpText(v) {
  const flags = [['hasIndices', 'd'], ['global', 'g'], ['ignoreCase', 'i'], ['multiline', 'm'], ['dotAll', 's'], ['unicode', 'u'], ['unicodeSets', 'v'], ['sticky', 'y']];
  return `/${regexpSource.call(v)}/${flags.map(([name, letter]) => tryCall(getter(RegExp.prototype, name), v) ? letter : '').join('')}`;
}

/**
 * @param {object} v
 * @returns {Kind | undefined}
 */
function kindOfCollection(v) {
  const name = constructorName(v);
  /** @type {(subtype: string, fallback: string, size?: number) => Kind} */
  const kind = (subtype, fallback, size) => ({ type: 'object', subtype, className: name || fallback, description: size === undefined ? name || fallback : `${name || fallback}(${size})` });
  if (ArrayBuffer.isView(v)) {
    const typed = tryCall(typedName, v);
    return typed ? kind('typedarray', typed, tryCall(typedLength, v)) : kind('dataview', 'DataView', tryCall(viewLength, v) ?? 0);
  }
  const map = tryCall(mapSize, v);
  if (map !== undefined) return kind('map', 'Map', map);
  const set = tryCall(setSize, v);
  if (set !== undefined) return kind('set', 'Set', set);
  const buffer = tryCall(bufferLength, v);
  if (buffer !== undefined) return kind('arraybuffer', 'ArrayBuffer', buffer);
  if (tryCall(isWeakMap, v)) return kind('weakmap', 'WeakMap');
  if (tryCall(isWeakSet, v)) return kind('weakset', 'WeakSet');
  if (v instanceof Promise) return kind('promise', 'Promise');
  if (generator.isPrototypeOf(v)) return { type: 'object', subtype: 'generator', className: 'Generator', description: 'Generator' };
  const proto = Object.getPrototypeOf(v);
  if (iterators.includes(proto)) {
    const tag = inherited(proto, /** @type {any} */ (Symbol.toStringTag)) ?? 'Iterator';
    return { type: 'object', subtype: 'iterator', className: tag, description: tag };
  }
  return undefined;
}

/** @this {any} */
function isWeakMap() {
  weakMapHas.call(this, this);
  return true;
}

/** @this {any} */
function isWeakSet() {
  weakSetHas.call(this, this);
  return true;
}

/**
 * @param {object} v
 * @returns {Kind}
 */
function kindOfPlain(v) {
  const name = constructorName(v) || 'Object';
  return { type: 'object', className: name, description: name };
}

/**
 * @param {Entry} e
 * @param {Host} host
 * @returns {string}
 */
function entryText(e, host) {
  const { key, value } = /** @type {any} */ (e);
  return 'key' in e ? `{${short(key, host)} => ${short(value, host)}}` : short(value, host);
}

/**
 * The text of a value inside of another one's.
 * @param {unknown} v
 * @param {Host} host
 * @returns {string}
 */
function short(v, host) {
  if (typeof v === 'string') return JSON.stringify(ellipsis(v, 100));
  if (v === null || typeof v === 'boolean') return String(v);
  const k = kindOf(v, host);
  if (k.type === 'function') return `ƒ ${functionName(/** @type {Function} */ (v))}`;
  return ellipsis((k.description ?? k.type).split('\n', 1)[0], 100);
}
