/**
 * The protocol between a page and natscope's ingest, as package ingest (Go)
 * documents it: JSON texts over a WebSocket. The page says hello and is welcomed
 * or rejected; then it sends numbered messages, which the server acknowledges.
 */

/** The protocol's version, which is also in the subprotocol. */
export const VERSION = 1;

/** The subprotocol that names the version. */
export const SUBPROTOCOL = `natscope.${VERSION}`;

/** The prefix of the subprotocol that carries the token. */
export const TOKEN_PROTOCOL = 'natscope.token.';

/** The client's name and version. */
export const LIBRARY = 'natscope-client 0.1.0';

/** The commands of package realm (Go) that a page answers. */
export const CAPABILITIES = Object.freeze([
  'runtime', 'console', 'sources', 'tree.resolve', 'tree.nodeOf', 'tree.inspected',
  'tree.inspect', 'tree.edit', 'tree.highlight', 'tree.pick', 'tree.log', 'tree.storeGlobal', 'tree.open', 'runespect.send',
]);

/** @typedef {null | boolean | number | string | JsonArray | JsonObject} Json */
/** @typedef {Json[]} JsonArray */
/** @typedef {{[key: string]: Json}} JsonObject */

/**
 * One observation. t is milliseconds on the page's clock.
 * @typedef {{t: number, topic: string, data: Json}} Rec
 */

/** @typedef {'tree' | 'net' | 'console' | 'event'} Plane */

/**
 * What a page says of itself.
 * @typedef {object} Hello
 * @property {'hello'} type
 * @property {number} version
 * @property {string} id the source id that the page would like to keep
 * @property {string} realm the page load
 * @property {number} now the page's clock
 * @property {string} [name]
 * @property {string} [url]
 * @property {string} [title]
 * @property {boolean} [visible]
 * @property {'client' | 'host'} kind
 * @property {string} [hostname] of a process
 * @property {number} [pid]
 * @property {string} [runtime]
 * @property {string} [library]
 * @property {string[]} [capabilities]
 */

/**
 * A numbered message, without its number.
 * @typedef {RecordsMessage | BodyMessage | UpdateMessage} Numbered
 */

/** @typedef {{type: 'records', plane: Plane, dropped?: number, records: Rec[]}} RecordsMessage */

/**
 * A piece of a body in base64; end says that and why it is the last.
 * @typedef {{type: 'body', request: string, dir: 'req' | 'res', offset: number, data?: string, end?: BodyEnd, total?: number}} BodyMessage
 */

/** @typedef {'complete' | 'truncated' | 'aborted'} BodyEnd */

/** @typedef {{type: 'update', url?: string, title?: string, visible?: boolean}} UpdateMessage */

/**
 * @typedef {object} Limits
 * @property {number} requestBodyBytes
 * @property {number} responseBodyBytes
 * @property {number} bodyChunkBytes
 * @property {number} nodes
 * @property {number} depth
 * @property {number} handles
 * @property {number} cordisNodes
 * @property {number} messageBytes
 * @property {number} recordsPerSecond
 * @property {number} reconnectMin milliseconds
 * @property {number} reconnectMax milliseconds
 */

/**
 * The limits until a server tells its own.
 * @type {Readonly<Limits>}
 */
export const DEFAULT_LIMITS = Object.freeze({
  requestBodyBytes: 8 << 20,
  responseBodyBytes: 32 << 20,
  bodyChunkBytes: 48 << 10,
  nodes: 100000,
  depth: 256,
  handles: 10000,
  cordisNodes: 2048,
  messageBytes: 1 << 20,
  recordsPerSecond: 20000,
  reconnectMin: 250,
  reconnectMax: 5000,
});

/** @typedef {{type: 'welcome', source: string, asked?: string, generation: string, space: string, resumed: boolean, last: number, resnapshot: boolean, limits: Limits}} Welcome */
/** @typedef {{type: 'rejected', code: string, reason: string, retry: boolean}} Rejected */
/**
 * A command for the page; the page answers with its id.
 * @typedef {{type: 'command', id: number, method: string, params: any, session?: string}} CommandMessage
 */

/** @typedef {{type: 'answer', id: number, ok: boolean, result?: Json, error?: {code: string, message: string}}} AnswerMessage */

/**
 * What happened to a pick: data is the component's id, 0 for none.
 * @typedef {{type: 'event', event: 'picked' | 'highlighted', data: {id: number}}} EventMessage
 */

/**
 * The answer to what the page asked the server.
 * @typedef {{type: 'reply', id: number, result?: any, error?: string}} Reply
 */

/** @typedef {CommandMessage | Welcome | Rejected | {type: 'ack', n: number} | {type: 'resnapshot'} | Reply | {type: 'ping'} | {type: 'pong'} | {type: 'problem', n?: number, reason: string}} ServerMessage */

/**
 * Reads a message of the server. Messages that are malformed or of an unknown
 * type are undefined.
 * @param {unknown} data
 * @returns {ServerMessage | undefined}
 */
export function parseServerMessage(data) {
  if (typeof data !== 'string') return undefined;
  let m;
  try {
    m = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (m === null || typeof m !== 'object') return undefined;
  switch (m.type) {
    case 'welcome':
      if (typeof m.source !== 'string' || !isCount(m.last)) return undefined;
      return { ...m, resumed: m.resumed === true, resnapshot: m.resnapshot === true, limits: readLimits(m.limits) };
    case 'rejected':
      return { type: 'rejected', code: String(m.code), reason: String(m.reason), retry: m.retry === true };
    case 'ack':
      return isCount(m.n) ? { type: 'ack', n: m.n } : undefined;
    case 'problem':
      return { type: 'problem', n: isCount(m.n) ? m.n : undefined, reason: String(m.reason) };
    case 'command':
      if (!isCount(m.id) || typeof m.method !== 'string') return undefined;
      return { type: 'command', id: m.id, method: m.method, params: isObject(m.params) ? m.params : {}, ...(typeof m.session === 'string' ? { session: m.session } : {}) };
    case 'reply':
      return isCount(m.id) ? { type: 'reply', id: m.id, result: m.result, ...(typeof m.error === 'string' ? { error: m.error } : {}) } : undefined;
    case 'resnapshot': case 'ping': case 'pong':
      return { type: m.type };
  }
  return undefined;
}

/**
 * @param {unknown} v
 * @returns {Limits}
 */
function readLimits(v) {
  /** @type {Record<string, number>} */
  const out = { ...DEFAULT_LIMITS };
  const given = v !== null && typeof v === 'object' ? /** @type {Record<string, unknown>} */ (v) : {};
  for (const key of Object.keys(out)) {
    const n = given[key];
    if (typeof n === 'number' && Number.isFinite(n) && n > 0) out[key] = n;
  }
  return /** @type {Limits} */ (/** @type {unknown} */ (out));
}

/**
 * @param {unknown} v
 * @returns {boolean}
 */
function isObject(v) {
  return v !== null && typeof v === 'object';
}

/**
 * @param {unknown} n
 * @returns {n is number}
 */
function isCount(n) {
  return typeof n === 'number' && Number.isSafeInteger(n) && n >= 0;
}
