import { requestLimit } from './checked.js';
import { sendRequestBody } from './fetch.js';
import { bodyType, readRequestBody } from './request.js';
import { callSite } from './stack.js';

/**
 * Records what the page sends by sendBeacon. Nobody is told of the response,
 * so a beacon is over when the browser took it.
 * @param {import('./fetch.js').NetOptions} o
 */
export function captureBeacon(o) {
  const nav = o.scope.navigator;
  const proto = nav && Object.getPrototypeOf(nav);
  if (typeof nav?.sendBeacon !== 'function') return;
  const { patches, faults, record, base } = o;
  patches.method(proto, 'sendBeacon', original => ({
    /** @this {any} @param {unknown[]} args */
    sendBeacon(...args) {
      const taken = Reflect.apply(original, this, args);
      if (patches.active) {
        faults.run(() => {
          const id = o.id();
          const hasBody = args[1] !== undefined && args[1] !== null;
          const body = hasBody ? readRequestBody(args[1], requestLimit(o)) : undefined;
          record('start', { id, method: 'POST', url: new URL(String(args[0]), base()).href, type: 'ping', documentURL: base(), stack: callSite(), headers: [], ...(hasBody ? { hasBody, bodyBytes: body ? body.total : -1 } : {}) });
          if (hasBody) sendRequestBody(o, id, body, bodyType([], args[1]));
          if (taken) record('end', { id, bytes: 0, captured: 0 });
          else record('error', { id, text: 'the browser did not take the beacon: too much waits to be sent already' });
        });
      }
      return taken;
    },
  }).sendBeacon);
}
