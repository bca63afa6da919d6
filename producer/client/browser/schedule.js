/** How often the tree of a hidden page is flushed, in milliseconds: nobody sees its frames. */
const HIDDEN_EVERY = 1000;

/**
 * Calls f when the tree may be flushed again: with the next frame while the
 * page is shown, and at most once a second while it is hidden.
 * @param {() => void} f
 */
export function nextFlush(f) {
  if (document.visibilityState === 'hidden') {
    setTimeout(f, HIDDEN_EVERY);
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
  const timer = setTimeout(once, HIDDEN_EVERY);
  requestAnimationFrame(once);
}

/** How long at most what can wait is put off, in milliseconds. */
const IDLE_WAIT = 200;

/**
 * Calls f when the page has nothing else to do, or soon at the latest.
 * @param {() => void} f
 */
export function whenIdle(f) {
  // A hidden page has no frames between which it would be idle.
  if (document.visibilityState === 'hidden' || typeof requestIdleCallback !== 'function') setTimeout(f, 0);
  else requestIdleCallback(() => f(), { timeout: IDLE_WAIT });
}
