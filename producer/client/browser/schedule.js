/** How often the tree of a hidden page is flushed, in milliseconds: nobody sees its frames. */
const HIDDEN_EVERY = 1000;
/** How long a flush waits at most for a moment in which a page that is shown has nothing to do, in milliseconds. */
const BUSY = 50;

/**
 * Calls f when the tree may be flushed again: behind the next frame, when the
 * page is idle, and at most once a second while it is hidden.
 * @param {() => void} f
 * @param {number} rest how long it must not be, in milliseconds
 */
export function nextFlush(f, rest) {
  if (document.visibilityState === 'hidden') {
    setTimeout(f, Math.max(HIDDEN_EVERY, rest));
    return;
  }
  let called = false;
  const once = () => {
    if (called) return;
    called = true;
    clearTimeout(timer);
    f();
  };
  // A page that is hidden before its next frame gets none.
  const timer = setTimeout(once, HIDDEN_EVERY + rest);
  const idle = () => idly(once, BUSY);
  if (rest > 0) setTimeout(idle, rest);
  else requestAnimationFrame(idle);
}

/** How long at most what can wait is put off, in milliseconds. */
const IDLE_WAIT = 200;

/**
 * Calls f when the page has nothing else to do, or soon at the latest.
 * @param {() => void} f
 */
export function whenIdle(f) {
  // A hidden page has no frames between which it would be idle.
  if (document.visibilityState === 'hidden') setTimeout(f, 0);
  else idly(f, IDLE_WAIT);
}

/**
 * @param {() => void} f
 * @param {number} timeout
 */
function idly(f, timeout) {
  if (typeof requestIdleCallback !== 'function') setTimeout(f, 0);
  else requestIdleCallback(() => f(), { timeout });
}
