import { captureBeacon } from './beacon.js';
import { captureConsole } from './console.js';
import { captureEventSource } from './eventsource.js';
import { captureFetch } from './fetch.js';
import { recordResources } from './resources.js';
import { captureWebSocket } from './websocket.js';
import { captureXHR } from './xhr.js';
import { tellable } from './checked.js';

/** Where natscope's own modules come from: loading them is nothing that the page did. */
const OWN = [new URL('../', import.meta.url).href, new URL('../../client.js', import.meta.url).href];

/** What calls load, which are seen as calls. */
const CALLS = new Set(['fetch', 'xmlhttprequest', 'beacon', 'eventsource']);

/**
 * Begins to watch what the page does, each part unless it is turned off. What
 * the page took hold of before stays as it is, and is not seen.
 * @param {import('./client.js').Client} client
 */
export function capture(client) {
  const { env, options, patches, faults } = client;
  const { scope } = env;
  if (options.console !== false && scope.console) {
    captureConsole({
      console: scope.console, patches, faults, now: env.now,
      record: (topic, data) => client.record('console', topic, data),
      keep: args => client.live?.keep(args) ?? 0,
    });
  }
  if (options.network === false) return;
  let last = 0;
  const streams = new Set();
  /** @type {import('./fetch.js').NetOptions} */
  const net = {
    scope, patches, faults,
    id: () => `r${(++last).toString(36)}`,
    record: (topic, data, t) => client.record('net', topic, JSON.stringify(tellable(data, client.redact)), t),
    sendBody: m => client.sendBody(m), redact: client.redact,
    limits: () => client.link.limits, now: env.now, base: () => env.place().url,
    setTimer: env.setTimer, clearTimer: env.clearTimer,
    streams,
  };
  const since = env.now();
  if (options.fetch !== false && typeof scope.fetch === 'function') captureFetch(net);
  if (options.calls !== false) for (const f of [captureXHR, captureWebSocket, captureEventSource, captureBeacon]) faults.run(() => f(net));
  client.keep(env.watchNetwork(net));
  if (options.resources === false) return;
  client.keep(env.watchResources(entries => faults.run(() => {
    // Chromium says "other" of an EventSource.
    const called = (/** @type {import('./resources.js').Entry} */ e) => CALLS.has(e.initiatorType) || e.initiatorType === 'other' && streams.has(e.name);
    recordResources(net, entries, e => e.startTime >= since && called(e) || OWN.some(p => e.name.startsWith(p)));
  })));
}
