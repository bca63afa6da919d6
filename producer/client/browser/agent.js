/** The flag that a runespect agent, or its capture, sets on the window. */
const FLAG = '__runespect_tier0';

/** Tells our own messages from others on the window. */
const TAG = 'natscope';

/**
 * Waits for a runespect agent in this page.
 * @param {(first: unknown) => void} found called with each of its messages, or at once with none when the agent is there already
 * @returns {() => void} ends it
 */
export function watchAgent(found) {
  /** @param {MessageEvent} e */
  const heard = e => {
    if (e.source === window && e.data?.source === 'runespect' && e.data.__rsFrom !== TAG) found(e.data);
  };
  addEventListener('message', heard);
  if (FLAG in globalThis) queueMicrotask(() => found(undefined));
  return () => removeEventListener('message', heard);
}

/**
 * Sends a message to the agent of this page.
 * @param {object} message
 */
export function tellAgent(message) {
  window.postMessage({ ...message, __rsFrom: TAG }, location.origin === 'null' ? '*' : location.origin);
}
