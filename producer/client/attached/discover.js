import { Module } from 'node:module';
import { join } from 'node:path';
import { isContext } from '../shared/contexts.js';

const BRAND = 'cordis.is';
const IS = Symbol.for(BRAND);

/**
 * Finds the Cordis runtime of a program that does not know of natscope. Cordis
 * brands the prototype of its contexts in the statement that asks for the name of
 * the brand, so the one assignment that follows tells the prototype; and a root
 * context names itself in its constructor, so an accessor of that name on the
 * prototype tells each root. Both behave as if they were not there.
 * @param {import('../shared/client.js').Client} client
 * @param {boolean} details
 */
export function watchCordis(client, details) {
  const { faults } = client;
  /** @type {(() => void)[]} */
  const undos = [];
  /** @type {Set<object>} */
  const prototypes = new Set();
  /** @type {any} the root that is shown */
  let shown;
  /** @type {(() => void) | undefined} */
  let end;
  let stopped = false;

  const show = (/** @type {any} */ root) => {
    if (stopped || root === shown || !isContext(root)) return;
    // One runtime is shown: the first that lives.
    if (shown && shown.fiber?.uid !== null) return;
    shown = root;
    end?.();
    end = client.cordis(root, { details });
  };

  const watch = (/** @type {any} */ prototype) => {
    if (stopped || prototypes.has(prototype) || Object.getOwnPropertyDescriptor(prototype, 'root')) return;
    prototypes.add(prototype);
    Object.defineProperty(prototype, 'root', {
      configurable: true, enumerable: false,
      get: () => undefined,
      /** @this {any} @param {any} value */
      set(value) {
        Object.defineProperty(this, 'root', { value, configurable: true, enumerable: true, writable: true });
        // The constructor goes on; the context can be read once it is done.
        queueMicrotask(() => faults.run(() => show(value)));
      },
    });
    undos.push(() => delete prototype.root);
  };

  undos.push(catchBrand(faults, watch));

  return {
    /**
     * Reads modules that the program has loaded already, and watches their contexts.
     * @param {string[]} urls
     * @returns {Promise<object | undefined>} the prototype of contexts
     */
    async load(urls) {
      let found;
      for (const url of urls) {
        const prototype = (await loaded(url).catch(() => undefined))?.Context?.prototype;
        if (!prototype || typeof prototype !== 'object' || !(IS in prototype)) continue;
        found ??= prototype;
        faults.run(() => watch(prototype));
      }
      return found;
    },
    /**
     * Shows a runtime that was there before.
     * @param {any[]} contexts
     */
    adopt(contexts) {
      for (const c of Array.from(contexts)) {
        const own = Object.getOwnPropertyDescriptor(c, 'root');
        if (own && 'value' in own) faults.run(() => show(own.value));
      }
    },
    stop() {
      stopped = true;
      end?.();
      for (const undo of undos) faults.run(undo);
    },
  };
}

/**
 * Imports a module that is loaded, which evaluates nothing. Only what a module
 * loader has compiled may import, so a module of our own does it.
 * @param {string} url
 * @returns {Promise<any>}
 */
function loaded(url) {
  const m = /** @type {any} */ (new Module('natscope'));
  m._compile('module.exports = url => import(url);\n//# sourceURL=natscope://client/attached/import.js', join(process.cwd(), 'natscope.cjs'));
  return m.exports(url);
}

/**
 * Waits for Cordis to name its brand, and for the assignment that comes next.
 * @param {import('../shared/faults.js').Faults} faults
 * @param {(prototype: object) => void} found
 * @returns {() => void} ends it
 */
function catchBrand(faults, found) {
  const before = Object.getOwnPropertyDescriptor(Symbol, 'for');
  if (!before?.configurable || typeof before.value !== 'function') return () => {};
  const original = before.value;
  let armed = false;
  const disarm = () => {
    if (!armed) return;
    armed = false;
    delete /** @type {any} */ (Object.prototype)[IS];
  };
  const arm = () => {
    if (armed || !Object.isExtensible(Object.prototype) || Object.hasOwn(Object.prototype, IS)) return;
    armed = true;
    Object.defineProperty(Object.prototype, IS, {
      configurable: true, enumerable: false,
      get: () => undefined,
      /** @this {any} @param {any} value */
      set(value) {
        disarm();
        Object.defineProperty(this, IS, { value, configurable: true, enumerable: true, writable: true });
        if (value === true) faults.run(() => found(this));
        undo();
      },
    });
    queueMicrotask(disarm);
  };
  const undo = () => {
    if (Symbol.for === named.for) Object.defineProperty(Symbol, 'for', before);
  };
  const named = {
    /** @param {any} key */
    for(key) {
      if (key === BRAND) faults.run(arm);
      return original(key);
    },
  };
  Object.defineProperty(Symbol, 'for', { ...before, value: named.for });
  return () => {
    disarm();
    undo();
  };
}
