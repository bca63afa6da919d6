/** How often the tree is flushed at most, in milliseconds. */
const EVERY = 16;

/**
 * Calls f when the tree may be flushed again.
 * @param {() => void} f
 * @param {number} rest how long it must not be, in milliseconds
 */
export function nextFlush(f, rest) {
  setTimeout(f, Math.max(EVERY, rest)).unref();
}

/**
 * Calls f at once: a process that starts has nobody waiting for its next frame.
 * @param {() => void} f
 */
export function whenIdle(f) {
  f();
}
