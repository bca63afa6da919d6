/**
 * Tells of uncaught exceptions and of rejections that nobody handles, without
 * handling them: the program ends as it would.
 * @param {(t: import('../shared/exception.js').Thrown) => void} thrown
 * @returns {() => void} ends it
 */
export function watchErrors(thrown) {
  const monitor = (/** @type {unknown} */ value, /** @type {string} */ origin) => {
    thrown({ text: origin === 'unhandledRejection' ? 'Uncaught (in promise)' : 'Uncaught', value });
  };
  process.on('uncaughtExceptionMonitor', monitor);
  return () => void process.off('uncaughtExceptionMonitor', monitor);
}
