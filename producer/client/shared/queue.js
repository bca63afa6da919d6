/**
 * A queue of texts that is bounded by count and size. When it is full, the
 * oldest goes and is counted, so that whoever is behind knows of the hole.
 */
export class Queue {
  /**
   * @param {number} maxCount
   * @param {number} maxSize in UTF-16 units of the texts
   */
  constructor(maxCount, maxSize) {
    this.maxCount = maxCount;
    this.maxSize = maxSize;
    /** @type {string[]} */
    this.items = [];
    this.head = 0;
    this.size = 0;
    /** How many were dropped since takeDropped was last called. */
    this.dropped = 0;
    /** How many were dropped ever. */
    this.lost = 0;
  }

  get length() {
    return this.items.length - this.head;
  }

  /** @param {string} text */
  push(text) {
    this.items.push(text);
    this.size += text.length;
    while (this.length > 1 && (this.length > this.maxCount || this.size > this.maxSize)) {
      this.shift();
      this.dropped++;
      this.lost++;
    }
  }

  /** @returns {string | undefined} */
  peek() {
    return this.items[this.head];
  }

  /** @returns {string | undefined} */
  shift() {
    if (this.length === 0) return undefined;
    const text = this.items[this.head];
    this.items[this.head] = '';
    this.head++;
    this.size -= text.length;
    // Moving the rest down now and then keeps each shift cheap.
    if (this.head > 64 && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return text;
  }

  /** @returns {number} how many were dropped before the first */
  takeDropped() {
    const n = this.dropped;
    this.dropped = 0;
    return n;
  }

  clear() {
    this.items = [];
    this.head = this.size = 0;
  }
}
