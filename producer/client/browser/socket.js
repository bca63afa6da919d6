/** @typedef {import('../shared/link.js').Socket} Socket */
/** @typedef {import('../shared/link.js').SocketEvents} SocketEvents */

// Taken at load, so that capturing the page's own WebSockets never sees this one.
const NativeWebSocket = globalThis.WebSocket;

/**
 * Opens a WebSocket.
 * @param {string} url
 * @param {string[]} protocols
 * @param {SocketEvents} events
 * @returns {Socket}
 */
export function connect(url, protocols, events) {
  const ws = new NativeWebSocket(url, protocols);
  ws.addEventListener('open', () => events.open());
  ws.addEventListener('message', e => events.message(e.data));
  ws.addEventListener('close', () => events.close());
  return {
    send: text => ws.send(text),
    close: () => ws.close(),
  };
}

/**
 * @param {object} request
 * @returns {boolean} whether a request is natscope's own; it never goes where requests are captured
 */
export function isOurs(request) {
  void request;
  return false;
}
