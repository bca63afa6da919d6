import { Client } from './client.js';

/** @typedef {import('./client.js').Environment} Environment */
/** @typedef {import('./client.js').Options} Options */

/**
 * What a program sees of natscope, also as globalThis.natscope.
 * @typedef {object} Natscope
 * @property {Client['component']} component
 * @property {Client['publish']} publish
 * @property {Client['reveal']} reveal
 * @property {Client['cordis']} cordis
 * @property {Client['runespect']} runespect
 * @property {Client['getTree']} getTree
 * @property {() => void} stop ends natscope and puts back everything that it patched
 * @property {() => Status} status
 */

/**
 * @typedef {object} Status
 * @property {string} state stopped, waiting, connecting or up
 * @property {string} id the source id, empty before there is one
 * @property {string} realm
 * @property {number} lost records that were dropped because queues were full
 * @property {number} faults errors inside natscope that were swallowed
 * @property {string} lastFault
 */

/**
 * Starts a client and makes it known: as globalThis.natscope, through the
 * promise globalThis.natscopeReady and by the event natscope:ready, which says
 * that the interface is there, not that a server is.
 * @param {Environment} env
 * @param {Options} options
 * @returns {Natscope}
 */
export function launch(env, options) {
  const { scope } = env;
  // Two script lines, or a script line and an import, are one client.
  if (isNatscope(scope.natscope)) return scope.natscope;
  const client = new Client(env, options);
  const api = face(client, () => {
    if (scope.natscope === api) delete scope.natscope;
    if (scope.natscopeReady === ready) delete scope.natscopeReady;
  });
  const ready = Promise.resolve(api);
  client.start();
  client.faults.run(() => {
    Object.defineProperty(scope, 'natscope', { value: api, configurable: true, writable: true, enumerable: false });
    Object.defineProperty(scope, 'natscopeReady', { value: ready, configurable: true, writable: true, enumerable: false });
    if (scope.dispatchEvent && scope.Event) scope.dispatchEvent(new scope.Event('natscope:ready'));
  });
  return api;
}

/**
 * @param {Client} client
 * @param {() => void} stopped
 * @returns {Natscope}
 */
function face(client, stopped) {
  return Object.freeze({
    component: client.component.bind(client),
    publish: client.publish.bind(client),
    reveal: client.reveal.bind(client),
    cordis: client.cordis.bind(client),
    runespect: client.runespect.bind(client),
    getTree: client.getTree.bind(client),
    stop() {
      client.stop();
      stopped();
    },
    status: () => ({
      state: client.link.state,
      id: client.claim?.id ?? '',
      realm: client.realm,
      lost: client.outbox.lost,
      faults: client.faults.count,
      lastFault: client.faults.last,
    }),
  });
}

/**
 * @param {unknown} v
 * @returns {v is Natscope}
 */
function isNatscope(v) {
  return v !== null && typeof v === 'object' && typeof (/** @type {any} */ (v).component) === 'function' && typeof (/** @type {any} */ (v).stop) === 'function';
}
