/** How often the tree is flushed at most, in milliseconds. */
const EVERY = 16;

/**
 * Calls f when the tree may be flushed again.
 * @param {() => void} f
 */
export function nextFlush(f) {
  setTimeout(f, EVERY).unref();
}

/**
 * Calls f at once: a process that starts has nobody waiting for its next frame.
 * @param {() => void} f
 */
export function whenIdle(f) {
  f();
}
