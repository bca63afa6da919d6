// The page's components, and how natscope sees them.
//
// A component has a name, values and a parent. While natscope's script is not
// there, or if it never comes, components work the same and nobody watches.

/** What natscope's script defines, if it is there. @type {any} */
const scope = globalThis;

/** @typedef {{update(values: object): void, remove(): void}} Shown */
/** @typedef {Record<string, (value: unknown) => void>} Setters */

/** @type {{component(name: string, values: object, parent?: Shown, extras?: {element: () => unknown, set: Setters}): Shown} | null} */
let natscope = null;

/** @type {Set<Component>} All components, parents before their children. */
const living = new Set();

export class Component {
  /**
   * @param {string} name
   * @param {Record<string, unknown>} values
   * @param {Component} [parent]
   */
  constructor(name, values, parent) {
    this.name = name;
    this.values = values;
    this.parent = parent;
    /** @type {Shown | undefined} */
    this.shown = undefined;
    living.add(this);
    this.show();
  }

  /** Changes some values. @param {Record<string, unknown>} values */
  update(values) {
    Object.assign(this.values, values);
    this.shown?.update(this.values);
  }

  /** Ends the component and all below it. */
  remove() {
    for (const c of living) if (c.parent === this) c.remove();
    living.delete(this);
    this.shown?.remove();
  }

  /** Where the component is on the page: natscope shows it there, and it can be picked. @returns {unknown} */
  element() { return undefined; }

  /** What people may change in DevTools; a setter throws with the reason why not. @returns {Setters} */
  setters() { return {}; }

  show() {
    if (!natscope) return;
    this.shown = natscope.component(this.name, this.values, this.parent?.shown, { element: () => this.element(), set: this.setters() });
  }
}

/**
 * Shows the components as soon as natscope is ready, and then calls done.
 * @param {() => void} done
 */
export function connect(done) {
  const ready = () => {
    // An element with the id natscope would be found under that name too.
    if (natscope || typeof scope.natscope?.component !== "function") return;
    natscope = scope.natscope;
    for (const c of living) c.show();
    done();
  };
  scope.addEventListener("natscope:ready", ready);
  Promise.resolve(scope.natscopeReady).then(ready, (err) => console.warn("natscope did not start", err));
}
