import { CommandError } from './failure.js';

/**
 * The live values that one session holds. A handle is a text that is never used
 * twice in its session. When more values are held than the limit, the oldest
 * are let go, and whoever asks for one of them is told so.
 */
export class Handles {
  /** @param {number} limit how many values are held at most */
  constructor(limit) {
    this.limit = limit;
    /** @type {Map<number, {value: unknown, group: string}>} oldest first */
    this.held = new Map();
    /** @type {Map<string, Set<number>>} */
    this.groups = new Map();
    this.last = 0;
    /** The newest handle that was let go for its age. */
    this.evicted = 0;
  }

  /**
   * @param {unknown} value
   * @param {string} [group]
   * @returns {string} its handle
   */
  add(value, group = '') {
    const id = ++this.last;
    this.held.set(id, { value, group });
    if (group) {
      const members = this.groups.get(group);
      if (members) members.add(id);
      else this.groups.set(group, new Set([id]));
    }
    while (this.held.size > this.limit) {
      const oldest = /** @type {number} */ (this.held.keys().next().value);
      this.evicted = oldest;
      this.drop(oldest);
    }
    return String(id);
  }

  /**
   * @param {unknown} handle
   * @returns {{value: unknown, group: string}}
   */
  get(handle) {
    const id = typeof handle === 'string' ? Number(handle) : NaN;
    const found = this.held.get(id);
    if (found) return found;
    if (Number.isInteger(id) && id > 0 && id <= this.evicted) {
      throw new CommandError('object-not-found', `this object was released, because more than ${this.limit} objects were held; evaluate its expression again`);
    }
    throw new CommandError('object-not-found', 'the page holds no such object for this session; it was released, or the page was loaded anew');
  }

  /** @param {unknown} handle */
  release(handle) {
    this.drop(Number(handle));
  }

  /** @param {unknown} group */
  releaseGroup(group) {
    const members = this.groups.get(String(group));
    this.groups.delete(String(group));
    for (const id of members ?? []) this.held.delete(id);
  }

  /** @param {number} id */
  drop(id) {
    const found = this.held.get(id);
    if (!found) return;
    this.held.delete(id);
    const members = this.groups.get(found.group);
    members?.delete(id);
    if (members?.size === 0) this.groups.delete(found.group);
  }

  /** Lets go of everything. */
  clear() {
    this.held.clear();
    this.groups.clear();
  }
}
