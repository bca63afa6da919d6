import { performance } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';
import { Client } from '../shared/client.js';
import { unsupported } from '../shared/unsupported.js';
import { runtime } from '../node/ground.js';
import { nextFlush, whenIdle } from '../node/schedule.js';
import { place } from '../node/place.js';
import { watchLife } from '../node/life.js';
import { watchNetwork } from '../node/network.js';
import { watchServed } from './served.js';
import { nodeOf } from './nodes.js';
import { watchCordis } from './discover.js';

/**
 * What natscope says of how it is attached.
 * @typedef {object} Options
 * @property {string} binding the name of the global function that the inspector put there, which takes texts
 * @property {boolean} outgoing whether the requests that the program makes are captured
 * @property {boolean} native whether the engine is left to tell of those, where it does
 * @property {boolean} incoming whether the requests that it answers are captured
 * @property {boolean} cordis whether Cordis runtimes are looked for
 * @property {boolean} details whether their nodes say more than what they are
 * @property {'secrets'} [redact]
 */

/** Where natscope finds what it put into a program. */
const PORT = Symbol.for('natscope.port');

/** How often the link may ask for natscope anew before it is taken as gone. */
const ATTEMPTS = 3;

/**
 * The client of a program that natscope reached through its inspector. There is
 * no other connection: texts go out through a binding of the inspector, and come
 * in by calls. The console, errors, objects and sessions are the engine's, so
 * this captures requests and trees only, and shows the program nothing of itself.
 */
class AttachedClient extends Client {
  /**
   * Components that nobody could have made are not told.
   * @param {Parameters<Client['flushTree']>} args
   */
  flushTree(...args) {
    if (this.tree !== this.components) super.flushTree(...args);
  }
}

/**
 * Begins to observe the program from inside. It never throws.
 * @param {Options} options
 * @returns {{late: boolean, error: string}} late says that the program may have Cordis runtimes already
 */
export function attach(options) {
  const scope = /** @type {any} */ (globalThis);
  try {
    const send = scope[options.binding];
    delete scope[options.binding];
    if (typeof send !== 'function') throw new Error('the inspector has no binding');
    // Another natscope, or the last run of this one, gives way.
    scope[PORT]?.stop();
    return begin(scope, options, send);
  } catch (e) {
    return { late: false, error: e instanceof Error ? e.message : String(e) };
  }
}

/**
 * Whether the engine tells of the requests of this thread. Its domain Network is
 * there without, and then tells nothing.
 * @returns {boolean}
 */
function tellsRequests() {
  return isMainThread && [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)].includes('--experimental-network-inspection');
}

/**
 * @param {any} scope
 * @param {Options} options
 * @param {(text: string) => void} send
 * @returns {{late: boolean, error: string}}
 */
function begin(scope, options, send) {
  const outgoing = options.outgoing && !(options.native && tellsRequests());
  /** @type {import('../shared/link.js').SocketEvents | undefined} */
  let socket;
  let connected = 0;
  const client = new AttachedClient({
    scope, runtime: runtime(), kind: 'host', pid: process.pid,
    place, watchLife, nextFlush, whenIdle,
    watchPlace: () => unsupported('changes of the address', 'a program that is attached to'),
    watchResources: () => unsupported('resource timings', 'a program that is attached to'),
    watchErrors: () => unsupported('errors', 'a program that is attached to'),
    watchAgent: () => unsupported('runespect agents', 'a program that is attached to'),
    tellAgent: () => {},
    watchNetwork: net => {
      const undos = [outgoing && watchNetwork(net), options.incoming && watchServed(net)].filter(f => typeof f === 'function');
      return () => undos.forEach(undo => undo());
    },
    connect: (_url, _protocols, events) => {
      // A link that has to connect again has lost natscope: nobody is left to tell.
      if (++connected > ATTEMPTS) {
        queueMicrotask(() => stop());
        return { send: () => {}, close: () => {} };
      }
      socket = events;
      queueMicrotask(() => socket === events && events.open());
      return { send, close: () => { if (socket === events) socket = undefined; } };
    },
    tools: () => Promise.reject(new Error('natscope: the engine answers')),
    svelte: () => Promise.reject(new Error('natscope: there is no page')),
    inspection: () => Promise.reject(new Error('natscope: the engine answers')),
    fetch: scope.fetch,
    ground: { load: undefined, save: undefined, lock: undefined, wait: () => Promise.resolve() },
    // The clock of the engine's events, in milliseconds since 1970.
    now: () => performance.timeOrigin + performance.now(),
    setTimer: (f, ms) => setTimeout(f, ms).unref(),
    clearTimer: t => clearTimeout(t),
  }, {
    url: 'inspector:', token: '', id: 'attached', console: false, resources: false, components: false,
    network: outgoing || options.incoming, fetch: outgoing, calls: outgoing, redact: options.redact,
  });
  const cordis = options.cordis ? watchCordis(client, options.details) : undefined;
  const nodes = nodeOf(scope, client);
  const stop = () => {
    client.faults.run(() => nodes.restore());
    client.faults.run(() => cordis?.stop());
    client.stop();
    if (scope[PORT] === port) delete scope[PORT];
  };
  const port = Object.freeze({
    deliver: (/** @type {string} */ text) => client.faults.run(() => socket?.message(text)),
    live: nodes.live, nodeOf: nodes.numbers, select: nodes.select, restore: nodes.restore,
    load: (/** @type {string[]} */ urls) => cordis?.load(urls),
    adopt: (/** @type {object[]} */ contexts) => cordis?.adopt(contexts),
    stop,
    status: () => ({ state: client.link.state, lost: client.outbox.lost, faults: client.faults.count, lastFault: client.faults.last }),
  });
  Object.defineProperty(scope, PORT, { value: port, configurable: true, enumerable: false, writable: false });
  client.start();
  return { late: options.cordis && performance.nodeTiming.loopStart >= 0, error: '' };
}
