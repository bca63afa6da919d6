/**
 * natscope as a plugin of Cordis, the same in a page and in Node:
 *
 *   import * as natscope from 'natscope/plugin';
 *   ctx.plugin(natscope, { url: 'ws://127.0.0.1:9230/ingest', token: 'TOKEN' });
 *
 * It shows the runtime's contexts and fibers, and provides the service
 * "inspector". Where natscope runs already, as by a script line, the
 * configuration may be left out. start is given where the environment is not a page.
 */

export const name = 'natscope';

/**
 * @typedef {object} Config
 * @property {string} [url] the ingest's WebSocket address
 * @property {string} [token]
 * @property {string} [id]
 * @property {string} [name]
 * @property {boolean} [details] whether nodes tell of plugins, states, errors, layers and services
 */

/**
 * @param {any} ctx
 * @param {Config} [config]
 */
export async function apply(ctx, config = {}) {
  const running = /** @type {any} */ (globalThis).natscope;
  let natscope = running;
  if (!natscope) {
    const { start } = await (typeof document === 'undefined' ? import('./node/start.js') : import('./browser/start.js'));
    natscope = start({ ...config, url: config.url ?? '', token: config.token ?? '' });
  }
  const inspector = Object.freeze({
    publish: natscope.publish,
    cordis: Object.freeze({ getTree: natscope.getTree }),
  });
  ctx.effect(() => {
    const stop = natscope.cordis(ctx, { details: config.details });
    return () => {
      stop();
      if (!running) natscope.stop();
    };
  }, 'natscope');
  ctx.provide('inspector', inspector);
}
