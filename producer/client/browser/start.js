import { launch } from '../shared/api.js';
import { connect } from './socket.js';
import { watchErrors } from './errors.js';
import { watchLife } from './life.js';
import { place, watchPlace } from './place.js';
import { tellAgent, watchAgent } from './agent.js';
import { watchNetwork } from './network.js';
import { watchResources } from './resources.js';
import { ground, runtime } from './ground.js';
import { nextFlush, whenIdle } from './schedule.js';

/**
 * Starts natscope in this page. Later calls return the client that runs.
 * @param {import('../shared/client.js').Options} options
 * @returns {import('../shared/api.js').Natscope}
 */
export function start(options) {
  // Taken before anything is patched, by us or by tests with fake clocks.
  const setTimer = setTimeout.bind(globalThis);
  const clearTimer = clearTimeout.bind(globalThis);
  return launch({
    scope: globalThis,
    runtime: runtime(), kind: 'client',
    place, watchPlace, watchResources, watchNetwork, watchLife, watchErrors, connect, nextFlush, whenIdle, watchAgent, tellAgent,
    tools: () => import('./tools.js'),
    svelte: () => import('./svelte.js'),
    inspection: () => import('./inspection.js'),
    fetch: globalThis.fetch?.bind(globalThis),
    ground: ground(),
    now: performance.now.bind(performance),
    setTimer: (f, ms) => setTimer(f, ms),
    clearTimer: t => clearTimer(t),
  }, options);
}
