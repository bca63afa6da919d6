/**
 * Tells when the page goes away, and when it comes back from the back/forward
 * cache. It never listens to unload, which would keep pages out of that cache.
 * @param {{leave: () => void, back: () => void, online: () => void}} events
 * @returns {() => void} ends it
 */
export function watchLife({ leave, back, online }) {
  /** @param {PageTransitionEvent} e */
  const onShow = e => {
    if (e.persisted) back();
  };
  const onVisible = () => {
    if (document.visibilityState === 'visible') online();
  };
  addEventListener('pagehide', leave);
  addEventListener('pageshow', onShow);
  addEventListener('online', online);
  document.addEventListener('visibilitychange', onVisible);
  return () => {
    removeEventListener('pagehide', leave);
    removeEventListener('pageshow', onShow);
    removeEventListener('online', online);
    document.removeEventListener('visibilitychange', onVisible);
  };
}
