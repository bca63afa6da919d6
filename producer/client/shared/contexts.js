/**
 * What is read of a Cordis runtime: its contexts and fibers, and how they are
 * nested. Only own properties are read of contexts, since others may be
 * answered by services.
 */

import { messageOf } from './read.js';
import { ellipsis } from './text.js';

const IS = Symbol.for('cordis.is');
const SHADOW = Symbol.for('cordis.shadow');
const ISOLATE = Symbol.for('cordis.isolate');
const INTERCEPT = Symbol.for('cordis.intercept');

/** How long a chain of prototypes is followed. */
const MAX_CHAIN = 1000;

/** The states of a fiber, by number. */
const STATES = ['pending', 'loading', 'active', 'failed', 'disposed', 'unloading'];

/**
 * @typedef {object} Found
 * @property {'context' | 'fiber'} kind
 * @property {any} object
 * @property {Found | undefined} parent
 * @property {Found[]} children
 * @property {number} uid of a fiber
 */

/**
 * @param {object} o
 * @param {PropertyKey} key
 * @returns {any} the value of an own property
 */
function own(o, key) {
  return Object.getOwnPropertyDescriptor(o, key)?.value;
}

/**
 * @param {any} v
 * @returns {boolean} whether it is a context of Cordis, of any copy of it
 */
export function isContext(v) {
  return v !== null && typeof v === 'object' && IS in v;
}

/**
 * The context behind those that services see in its place.
 * @param {any} ctx
 * @returns {any}
 */
export function unshadowed(ctx) {
  let at = ctx;
  for (let i = 0; at && i < MAX_CHAIN && Object.getOwnPropertyDescriptor(at, SHADOW); i++) at = Object.getPrototypeOf(at);
  return at;
}

/**
 * Collects what can be reached of a runtime: every living fiber with its
 * context, and the contexts that listen to something, with all that they are
 * made from. Symbols of hooks are internal and passed over.
 * @param {any} root
 * @returns {Found} the root context with everything below it
 */
export function collect(root) {
  /** @type {Map<object, Found | undefined>} undefined for what does not belong here */
  const known = new Map();
  /** @type {Found} */
  const top = { kind: 'context', object: root, parent: undefined, children: [], uid: 0 };
  known.set(root, top);
  const fibers = [];
  for (const runtime of root.registry.values()) {
    for (const fiber of runtime.fibers) if (alive(fiber)) fibers.push(fiber);
  }
  fibers.sort((a, b) => own(a, 'uid') - own(b, 'uid'));
  for (const fiber of fibers) context(own(fiber, 'ctx'), known);
  const hooks = root.events._hooks;
  for (const name of Object.keys(hooks)) {
    for (const hook of hooks[name] ?? []) context(hook?.ctx, known);
  }
  return top;
}

/**
 * @param {any} fiber
 * @returns {boolean}
 */
function alive(fiber) {
  return fiber !== null && typeof fiber === 'object' && typeof own(fiber, 'uid') === 'number';
}

/**
 * Places a context below what it is made from, which is placed first.
 * @param {any} ctx
 * @param {Map<object, Found | undefined>} known
 */
function context(ctx, known) {
  /** @type {any[]} */
  const chain = [];
  let at = unshadowed(ctx);
  for (let i = 0; isContext(at) && !known.has(at); i++) {
    if (i === MAX_CHAIN) return;
    chain.push(at);
    at = unshadowed(above(at));
  }
  if (!isContext(at)) {
    // It belongs to another root.
    for (const c of chain) known.set(c, undefined);
    return;
  }
  for (const c of chain.reverse()) known.set(c, place(c, known.get(unshadowed(above(c)))));
}

/**
 * @param {any} ctx
 * @returns {any} the context that a context is made from: that of the fiber's parent, or its prototype
 */
function above(ctx) {
  const fiber = own(ctx, 'fiber');
  return fiber && own(fiber, 'ctx') === ctx ? own(fiber, 'parent') : Object.getPrototypeOf(ctx);
}

/**
 * @param {any} ctx
 * @param {Found | undefined} parent
 * @returns {Found | undefined} undefined for what is disposed, or below it
 */
function place(ctx, parent) {
  if (!parent) return undefined;
  const fiber = own(ctx, 'fiber');
  let holder = parent;
  if (fiber && own(fiber, 'ctx') === ctx) {
    if (!alive(fiber)) return undefined;
    /** @type {Found} */
    const f = { kind: 'fiber', object: fiber, parent, children: [], uid: own(fiber, 'uid') };
    parent.children.push(f);
    holder = f;
  }
  /** @type {Found} */
  const c = { kind: 'context', object: ctx, parent: holder, children: [], uid: 0 };
  holder.children.push(c);
  return c;
}

/**
 * What people may want to know of a node besides its place.
 * @param {Found} f
 * @param {Map<object, string[]>} services by fiber
 * @param {object} [teller] who told the fiber's state last, if not the fiber itself
 * @returns {[string, string][]}
 */
export function details(f, services, teller = f.object) {
  /** @type {[string, string][]} */
  const out = [];
  const add = (/** @type {string} */ name, /** @type {unknown} */ value) => {
    if (typeof value === 'string' && value !== '') out.push([name, ellipsis(value, 300)]);
  };
  if (f.kind === 'fiber') {
    add('plugin', own(own(f.object, 'runtime') ?? {}, 'name'));
    const told = (/** @type {string} */ key) => own(Object.getOwnPropertyDescriptor(teller, key) ? teller : f.object, key);
    add('state', STATES[told('state')]);
    const error = told('_error');
    if (error !== undefined && error !== null) add('error', messageOf(error) || 'an error without a message');
    add('services', services.get(f.object)?.join(' '));
    return out;
  }
  // The root's fiber is no node, so its context says what it provides.
  if (f.parent === undefined) add('services', services.get(own(f.object, 'fiber'))?.join(' '));
  if (f.parent === undefined || f.parent.kind === 'fiber') return out;
  const isolated = own(f.object, ISOLATE);
  const intercepted = own(f.object, INTERCEPT);
  const rest = Reflect.ownKeys(f.object).filter(k => typeof k === 'string');
  add('layer', isolated ? 'isolate' : intercepted ? 'intercept' : 'extend');
  add('of', [...Object.keys(isolated ?? {}), ...Object.keys(intercepted ?? {}), ...rest].join(' '));
  return out;
}

/**
 * @param {any} root
 * @returns {Map<object, string[]>} the names of the services that each fiber provides
 */
export function servicesOf(root) {
  const out = new Map();
  const store = root.reflect.store;
  for (const key of Object.getOwnPropertySymbols(store)) {
    const { name, fiber } = store[key] ?? {};
    const list = out.get(fiber);
    if (list) list.push(String(name));
    else out.set(fiber, [String(name)]);
  }
  return out;
}
