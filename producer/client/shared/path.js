/**
 * Ways into a value: a step is a property's name, or the place of an entry in
 * an array, a Map, a Set or URLSearchParams. Accessors are never called.
 */

import { property, first } from './read.js';
import { TAG } from './value.js';
import { CommandError } from './failure.js';

/** @typedef {string | number} Step */

const mapEntries = Map.prototype.entries;
const setValues = Set.prototype.values;
const paramsEntries = URLSearchParams.prototype.entries;

/**
 * Follows a path into a value.
 * @param {unknown} v
 * @param {Step[]} steps
 * @returns {{value: unknown} | undefined} undefined when the path leads nowhere
 */
export function follow(v, steps) {
  let at = v;
  for (const step of steps) {
    if (at === null || typeof at !== 'object') return undefined;
    const next = enter(at, step);
    if (!next) return undefined;
    at = next.value;
  }
  return { value: at };
}

/**
 * @param {object} v
 * @param {Step} step
 * @returns {{value: unknown} | undefined}
 */
function enter(v, step) {
  if (typeof step === 'number' && !Array.isArray(v)) {
    const list = entries(v, step + 1);
    return list && step < list.length ? { value: list[step] } : undefined;
  }
  if (!Object.getOwnPropertyDescriptor(v, String(step))) return undefined;
  return { value: property(v, String(step)) };
}

/**
 * @param {object} v
 * @param {number} n
 * @returns {unknown[] | undefined} the values of the first n entries; undefined if v has none
 */
function entries(v, n) {
  try {
    if (v instanceof Map) return first(mapEntries.call(v), n).map(e => e[1]);
    if (v instanceof Set) return first(setValues.call(v), n);
    if (v instanceof URLSearchParams) return first(paramsEntries.call(v), n).map(e => e[1]);
  } catch {
    // It only looks like one.
  }
  return undefined;
}

/**
 * Returns a value in which what the path leads to is replaced. Everything along
 * the path is copied, everything else shared, and the given value is left as it
 * is. What cannot be copied faithfully is refused with a CommandError.
 * @param {unknown} v
 * @param {Step[]} steps
 * @param {unknown} replacement
 * @returns {unknown}
 */
export function replaceAt(v, steps, replacement) {
  if (steps.length === 0) return replacement;
  const [step, ...rest] = steps;
  if (v === null || typeof v !== 'object') throw new CommandError('object-not-found', `the path leads into ${v === null ? 'null' : `a ${typeof v}`} at ${quoted(step)}`);
  const old = enter(v, step);
  if (!old && (rest.length > 0 || typeof step === 'number')) throw new CommandError('object-not-found', `there is no ${quoted(step)} on the path`);
  const made = replaceAt(old?.value, rest, replacement);
  if (Array.isArray(v)) return copyArray(v, step, made);
  if (v instanceof Map && typeof step === 'number') {
    let i = 0;
    return new Map(Array.from(mapEntries.call(v), ([k, x]) => [k, i++ === step ? made : x]));
  }
  if (v instanceof Set && typeof step === 'number') {
    let i = 0;
    return new Set(Array.from(setValues.call(v), x => i++ === step ? made : x));
  }
  return copyObject(v, step, made);
}

/**
 * @param {unknown[]} v
 * @param {Step} step
 * @param {unknown} made
 * @returns {unknown[]}
 */
function copyArray(v, step, made) {
  const i = Number(step);
  if (!Number.isInteger(i) || i < 0 || i >= v.length) throw new CommandError('object-not-found', `the array has no entry ${quoted(step)}`);
  const out = v.slice();
  out[i] = made;
  return out;
}

/**
 * @param {object} v
 * @param {Step} step
 * @param {unknown} made
 * @returns {object}
 */
function copyObject(v, step, made) {
  const proto = Object.getPrototypeOf(v);
  if (proto !== null && Object.getPrototypeOf(proto) !== null) {
    throw new CommandError('refused', `what holds ${quoted(step)} is an instance of a class, which cannot be copied faithfully`);
  }
  const descriptors = Object.getOwnPropertyDescriptors(v);
  const d = Object.getOwnPropertyDescriptor(v, String(step));
  if (d && !('value' in d)) throw new CommandError('refused', `${quoted(step)} is an accessor, not a value`);
  const out = Object.create(proto, descriptors);
  Object.defineProperty(out, String(step), { value: made, writable: true, enumerable: d?.enumerable ?? true, configurable: true });
  return out;
}

/**
 * Reports whether plain JSON has a marker in it, which stands for something
 * that the one who sent it never had.
 * @param {unknown} v
 * @param {string} [tag] the key that marks them
 * @returns {boolean}
 */
export function hasMarker(v, tag = TAG) {
  const open = [v];
  while (open.length > 0) {
    const x = open.pop();
    if (x === null || typeof x !== 'object') continue;
    if (Object.hasOwn(x, tag)) return true;
    open.push(...Object.values(x));
  }
  return false;
}

/**
 * @param {Step} step
 * @returns {string}
 */
function quoted(step) {
  return JSON.stringify(step);
}
