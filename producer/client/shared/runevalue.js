import { ellipsis, wellFormed } from './text.js';
import { MAX_STRING, TAG, encodeShort } from './value.js';

/** The key that marks an object as a marker of runespect. */
export const RUNE_TAG = '__runespect';

/** The markers of runespect that have other names here. */
const NAMES = /** @type {Record<string, string>} */ ({ 'error-object': 'error', error: 'threw' });

/** How deep a value of the agent is read; the agent sends four levels. */
const MAX_DEPTH = 20;

/** @typedef {Record<string, any>} Marker */

const text = (/** @type {unknown} */ v) => typeof v === 'string';
const size = (/** @type {unknown} */ v) => Number.isSafeInteger(v) && /** @type {number} */ (v) >= 0;
const pairs = (/** @type {Marker} */ m) => Array.isArray(m.entries) && m.entries.every(e => Array.isArray(e) && e.length === 2);

/**
 * What makes each marker one. A reader refuses a whole tree for one marker that is none.
 * @type {Record<string, (m: Marker) => boolean>}
 */
const RULES = {
  undefined: () => true,
  number: m => ['NaN', 'Infinity', '-Infinity', '-0'].includes(m.value),
  bigint: m => text(m.value) && /^-?\d+$/.test(m.value),
  symbol: m => text(m.value),
  date: m => m.iso === null || text(m.iso),
  regexp: m => text(m.source) && text(m.flags),
  error: m => text(m.name) && text(m.message) && (m.stack === undefined || text(m.stack)),
  map: pairs,
  urlsearchparams: pairs,
  object: m => pairs(m) && m.entries.every((/** @type {any[]} */ e) => text(e[0])),
  set: m => Array.isArray(m.values),
  string: m => text(m.head) && size(m.length),
  instance: m => text(m.name) && isObject(m.fields) && !(TAG in m.fields),
  function: m => text(m.name),
  threw: m => text(m.message),
  dehydrated: m => text(m.type) && text(m.preview) && size(m.size),
  partial: m => size(m.size) && (Array.isArray(m.value) || isObject(m.value) && [undefined, 'map', 'set', 'urlsearchparams', 'object', 'instance'].includes(m.value[TAG])),
};

/**
 * A value in runespect's encoding, in ours. What is in neither is said, and breaks nothing.
 * @param {any} v
 * @param {number} [depth]
 * @returns {any}
 */
export function converted(v, depth = 0) {
  if (typeof v === 'string') return wellFormed(v);
  // A window carries more than JSON.
  if (v !== null && typeof v !== 'boolean' && !Array.isArray(v) && !isObject(v)) return encodeShort(v);
  if (v === null || typeof v === 'boolean') return v;
  if (depth > MAX_DEPTH) return { [TAG]: 'dehydrated', type: 'object', preview: '…', size: 0 };
  if (Array.isArray(v)) return Array.from(v, x => converted(x, depth + 1));
  const tag = v[RUNE_TAG];
  return typeof tag === 'string' ? marker(NAMES[tag] ?? tag, v, depth) : plain(v, depth);
}

/**
 * @param {string} kind
 * @param {Marker} v
 * @param {number} depth
 * @returns {Marker}
 */
function marker(kind, v, depth) {
  /** @type {Marker} */
  const out = { [TAG]: kind };
  for (const [k, x] of Object.entries(v)) {
    if (k !== RUNE_TAG && k !== TAG) define(out, k, k === 'fields' && isObject(x) ? members(x, depth) : converted(x, depth + 1));
  }
  const known = Object.hasOwn(RULES, kind);
  if (known && !RULES[kind](out)) return { [TAG]: 'threw', message: `the page sent something that is no ${kind}` };
  return out;
}

/**
 * @param {Marker} v
 * @param {number} depth
 * @returns {Marker} an object of the page; one with a key like that of a marker must not be taken for one
 */
function plain(v, depth) {
  const out = members(v, depth);
  return TAG in out ? { [TAG]: 'object', entries: Object.entries(out) } : out;
}

/**
 * @param {Marker} v
 * @param {number} depth
 * @returns {Marker}
 */
function members(v, depth) {
  /** @type {Marker} */
  const out = {};
  for (const [k, x] of Object.entries(v)) define(out, ellipsis(k, MAX_STRING), converted(x, depth + 1));
  return out;
}

/**
 * @param {Marker} o
 * @param {string} key
 * @param {unknown} value
 */
function define(o, key, value) {
  Object.defineProperty(o, key, { value, enumerable: true, configurable: true, writable: true });
}

/**
 * @param {any} v
 * @returns {v is Marker} whether it is an object as JSON makes them
 */
function isObject(v) {
  if (v === null || typeof v !== 'object' || Array.isArray(v)) return false;
  const proto = Object.getPrototypeOf(v);
  return proto === null || Object.getPrototypeOf(proto) === null;
}
