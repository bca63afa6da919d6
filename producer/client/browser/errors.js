/** @typedef {import('../shared/exception.js').Thrown} Thrown */

/**
 * Tells of uncaught exceptions and of rejections that nobody handles.
 * @param {(t: Thrown) => void} thrown
 * @returns {() => void} ends it
 */
export function watchErrors(thrown) {
  /** @param {ErrorEvent} e */
  const onError = e => thrown({
    text: 'Uncaught', value: e.error ?? e.message, url: e.filename || undefined, line: e.lineno || undefined, column: e.colno || undefined,
  });
  /** @param {PromiseRejectionEvent} e */
  const onRejection = e => thrown({ text: 'Uncaught (in promise)', value: e.reason });
  addEventListener('error', onError);
  addEventListener('unhandledrejection', onRejection);
  return () => {
    removeEventListener('error', onError);
    removeEventListener('unhandledrejection', onRejection);
  };
}
