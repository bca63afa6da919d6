import { hostname } from 'node:os';
import { basename } from 'node:path';
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
 * Starts natscope in this process. Later calls return the client that runs. It
 * never keeps the process alive. natscope attach shows more of a program, and
 * needs nothing in it.
 * @param {import('../shared/client.js').Options} options
 * @returns {import('../shared/api.js').Natscope}
 */
export function start(options) {
  return launch({
    scope: globalThis,
    runtime: runtime(),
    kind: 'host', hostname: hostname(), pid: process.pid,
    place, watchPlace, watchResources, watchNetwork, watchLife, watchErrors, connect, nextFlush, whenIdle, watchAgent, tellAgent,
    tools: () => import('./tools.js'),
    svelte: () => import('./svelte.js'),
    inspection: () => import('./inspection.js'),
    fetch: globalThis.fetch?.bind(globalThis),
    ground: ground(),
    now: performance.now.bind(performance),
    setTimer: (f, ms) => setTimeout(f, ms).unref(),
    clearTimer: t => clearTimeout(t),
  }, { ...options, id: options.id ?? `${basename(process.argv[1] ?? 'node').replace(/\.[cm]?[jt]s$/, '')}-${hostname()}` });
}
