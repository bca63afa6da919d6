/** @typedef {import('../shared/client.js').Place} Place */

/** @returns {Place} where the page is now */
export function place() {
  return { url: location.href, title: document.title, visible: document.visibilityState !== 'hidden' };
}

/**
 * Tells when the page's address, title or visibility may have changed.
 * @param {() => void} changed
 * @returns {() => void} ends it
 */
export function watchPlace(changed) {
  // An application that navigates on the client changes its address before
  // these events' listeners run, or right after them.
  const soon = () => queueMicrotask(changed);
  const navigation = /** @type {EventTarget | undefined} */ (/** @type {any} */ (globalThis).navigation);
  navigation?.addEventListener('currententrychange', soon);
  addEventListener('popstate', soon);
  addEventListener('hashchange', soon);
  document.addEventListener('visibilitychange', soon);
  // The title element may come late, be replaced, or be set by document.title.
  const titles = new MutationObserver(soon);
  if (document.head) titles.observe(document.head, { childList: true, characterData: true, subtree: true });
  return () => {
    navigation?.removeEventListener('currententrychange', soon);
    removeEventListener('popstate', soon);
    removeEventListener('hashchange', soon);
    document.removeEventListener('visibilitychange', soon);
    titles.disconnect();
  };
}
