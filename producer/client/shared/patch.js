/**
 * The patches of one client, which all go at once. A patch that somebody else
 * has patched over cannot be taken out; it then only passes calls on.
 */
export class Patches {
  constructor() {
    /** Whether the patches do more than pass calls on. */
    this.active = true;
    /** @type {(() => void)[]} */
    this.undos = [];
  }

  /**
   * Replaces a function property. The replacement looks like the original: name, length and own properties.
   * @param {object} target
   * @param {string} key
   * @param {(original: Function) => Function} make
   * @returns {boolean} whether there was a function to replace
   */
  method(target, key, make) {
    const before = Object.getOwnPropertyDescriptor(target, key);
    const original = /** @type {any} */ (target)[key];
    if (typeof original !== 'function') return false;
    if (before && !before.configurable && !before.writable) return false;
    const patched = make(original);
    for (const [k, d] of Object.entries(Object.getOwnPropertyDescriptors(original))) {
      if (k !== 'prototype') attempt(() => Object.defineProperty(patched, k, d));
    }
    Object.defineProperty(target, key, { value: patched, writable: true, enumerable: before?.enumerable ?? true, configurable: true });
    this.undo(target, key, before, d => d?.value === patched);
    return true;
  }

  /**
   * Watches what a constructor makes. The replacement is the original in every
   * other respect: its static members, its prototype, and what it throws.
   * @param {object} target
   * @param {string} key
   * @param {(made: any, args: unknown[]) => void} made called with each new object; it must not throw
   * @returns {boolean} whether there was a constructor to replace
   */
  construct(target, key, made) {
    const before = Object.getOwnPropertyDescriptor(target, key);
    const original = before?.value;
    if (typeof original !== 'function' || !before?.configurable && !before?.writable) return false;
    /** @type {any} */
    const patched = new Proxy(original, {
      construct: (to, args, newTarget) => {
        /** @type {any} */
        const o = Reflect.construct(to, args, newTarget === patched ? to : newTarget);
        if (this.active) made(o, args);
        return o;
      },
    });
    Object.defineProperty(target, key, { ...before, value: patched });
    this.undo(target, key, before, d => d?.value === patched);
    const proto = original.prototype;
    const own = Object.getOwnPropertyDescriptor(proto, 'constructor');
    if (own && own.value === original && own.configurable) {
      Object.defineProperty(proto, 'constructor', { ...own, value: patched });
      this.undo(proto, 'constructor', own, d => d?.value === patched);
    }
    return true;
  }

  /**
   * Replaces the getter of an accessor property.
   * @param {object} target
   * @param {string} key
   * @param {(original: (this: any) => any) => (this: any) => any} make
   * @returns {boolean} whether there was a getter to replace
   */
  getter(target, key, make) {
    const before = Object.getOwnPropertyDescriptor(target, key);
    if (!before?.get || !before.configurable) return false;
    const get = make(before.get);
    for (const k of ['name', 'length']) attempt(() => Object.defineProperty(get, k, /** @type {any} */ (Object.getOwnPropertyDescriptor(/** @type {any} */ (before.get), k))));
    Object.defineProperty(target, key, { ...before, get });
    this.undo(target, key, before, d => d?.get === get);
    return true;
  }

  /**
   * @param {object} target
   * @param {string} key
   * @param {PropertyDescriptor | undefined} before
   * @param {(d: PropertyDescriptor | undefined) => boolean} ours
   */
  undo(target, key, before, ours) {
    this.undos.push(() => {
      if (!ours(Object.getOwnPropertyDescriptor(target, key))) return;
      if (before) Object.defineProperty(target, key, before);
      else delete (/** @type {any} */ (target)[key]);
    });
  }

  /** Takes every patch out. */
  restore() {
    this.active = false;
    for (const undo of this.undos.reverse()) attempt(undo);
    this.undos = [];
  }
}

/** @param {() => unknown} f */
function attempt(f) {
  try {
    f();
  } catch {
    // A target that refuses keeps what it has.
  }
}
