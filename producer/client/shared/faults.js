/**
 * Whatever goes wrong inside natscope stays inside: it is counted, and the page
 * goes on as if natscope were not there.
 */
export class Faults {
  constructor() {
    /** How many errors were swallowed. */
    this.count = 0;
    /** What the newest said. */
    this.last = '';
  }

  /** @param {unknown} e */
  add(e) {
    this.count++;
    try {
      this.last = String(/** @type {any} */ (e)?.message ?? e).slice(0, 300);
    } catch {
      this.last = 'an error that cannot be read';
    }
  }

  /**
   * Runs f and swallows what it throws.
   * @template T
   * @param {() => T} f
   * @returns {T | undefined}
   */
  run(f) {
    try {
      return f();
    } catch (e) {
      this.add(e);
      return undefined;
    }
  }
}
