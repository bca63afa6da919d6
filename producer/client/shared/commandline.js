/**
 * The names that only code from a console sees, for the time that it runs.
 * @param {{last: unknown, inspected: unknown[], mirror: import('./remote.js').Mirror, emit: (event: string, data: object) => void}} session
 * @param {{scope: any, inspection: {commandLine: () => Record<string, unknown>}}} o
 * @returns {Record<string, unknown>}
 */
export function commandLine(session, { scope, inspection }) {
  /** @type {Record<string, unknown>} */
  const tools = {
    keys: (/** @type {object} */ v) => Object.keys(v),
    values: (/** @type {object} */ v) => Object.values(v),
    dir: (/** @type {unknown} */ v) => scope.console.dir(v),
    dirxml: (/** @type {unknown[]} */ ...args) => scope.console.dirxml(...args),
    table: (/** @type {unknown[]} */ ...args) => scope.console.table(...args),
    clear: () => scope.console.clear(),
    inspect: (/** @type {unknown} */ v) => {
      session.emit('runtime.inspectRequested', { object: session.mirror.wrap(v), hints: {} });
      return v;
    },
    copy: (/** @type {unknown} */ v) => session.emit('runtime.inspectRequested', { object: session.mirror.wrap(v), hints: { copyToClipboard: true } }),
    ...inspection.commandLine(),
    $_: session.last,
  };
  for (let i = 0; i < 5; i++) tools[`$${i}`] = session.inspected[i];
  return tools;
}
