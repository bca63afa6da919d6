/** @typedef {{function: string, url: string, line: number, column: number}} Frame */

/** Where natscope's own modules are: the folder above this one. */
const HOME = new URL('../', import.meta.url).href;
/** The entry is known by two addresses: Firefox tells the one that was asked for, Chrome the one that the server led to. */
const OWN = [...['shared/', 'browser/', 'node/', 'attached/', 'client.js'].map(p => HOME + p), new URL('../client.js', HOME).href];

const MAX_FRAMES = 50;

/** What the stacks of calls say, by their texts: a page calls from few places, again and again. @type {Map<string, Site>} */
const sites = new Map();
const MAX_SITES = 500;
const MAX_SITE = 4000;

/** @typedef {{frames: readonly Frame[], json: string}} Site */

/** How the address of a frame is told. There is one client in a realm. */
let shown = (/** @type {string} */ url) => url;

/**
 * Says how the addresses of frames are told from now on.
 * @param {(url: string) => string} f
 * @returns {() => void} ends it
 */
export function showAddresses(f) {
  shown = f;
  sites.clear();
  return () => {
    if (shown === f) shown = url => url;
    sites.clear();
  };
}

/**
 * @param {string} url
 * @returns {string} the address as it is told
 */
export function shownAddress(url) {
  return shown(url);
}

/** The frame of code that was evaluated for somebody: V8 tells the place of the eval, which is ours. */
const EVALUATED = /^(\s+at )(?:(?!eval \()(.*?) \()?(?:eval \()?eval at .*, (<anonymous>:\d+:\d+)\)?$/;

/**
 * The stack of an error as the page's author would expect it: without our own
 * frames, and with the frames of evaluated code as if nobody had evaluated it.
 * @param {string} stack
 * @returns {string}
 */
export function cleanStack(stack) {
  if (!OWN.some(p => stack.includes(p))) return stack;
  // Whoever called eval is of no interest to those who wrote the code.
  const [shown] = stack.split('\n    at eval (<anonymous>)', 1);
  return shown.split('\n').map(line => {
    const m = EVALUATED.exec(line);
    if (m && line.includes(HOME)) return m[2] ? `${m[1]}${m[2]} (${m[3]})` : `${m[1]}${m[3]}`;
    return OWN.some(p => line.includes(p)) ? undefined : line;
  }).filter(line => line !== undefined).join('\n');
}

/**
 * Returns where the page called us: the stack without our own frames, innermost first.
 * @returns {readonly Frame[]}
 */
export function callSite() {
  return siteOf(new Error().stack).frames;
}

/** @returns {Site} where the page called us, also as JSON */
export function callSiteJSON() {
  return siteOf(new Error().stack);
}

/**
 * @param {unknown} stack
 * @returns {Site}
 */
function siteOf(stack) {
  const key = typeof stack === 'string' ? stack : '';
  let site = sites.get(key);
  if (site) return site;
  const frames = Object.freeze(parseStack(stack));
  site = { frames, json: JSON.stringify(frames) };
  if (key.length > MAX_SITE) return site;
  if (sites.size >= MAX_SITES) sites.clear();
  sites.set(key, site);
  return site;
}

/**
 * Parses the stack of an error, as V8, SpiderMonkey and JavaScriptCore write
 * it, and leaves out our own frames and those without a place.
 * @param {unknown} stack
 * @returns {Frame[]}
 */
export function parseStack(stack) {
  if (typeof stack !== 'string') return [];
  const out = [];
  for (const line of stack.split('\n', 200)) {
    const f = parseLine(line);
    if (f && !OWN.some(p => f.url.startsWith(p))) out.push(f);
    if (out.length === MAX_FRAMES) break;
  }
  return out;
}

/** "    at name (url:line:column)" or "    at url:line:column", as V8 writes it. */
const V8 = /^\s*at (?:(.*?) \()?((?:[a-z][a-z0-9+.-]*:|\/|<anonymous>).*?):(\d+):(\d+)\)?$/i;
/** "    at name (eval at other (url:line:column), <anonymous>:1:2)": the place of the eval is one that somebody can open. */
const V8_EVAL = /^\s*at (?:(.*?) \()?eval at .*?\(((?:[a-z][a-z0-9+.-]*:|\/)[^()]*):(\d+):(\d+)\)[,)]/i;
/** "name@url:line:column", as SpiderMonkey and JavaScriptCore write it. */
const AT = /^(?:(.*?)@)?((?:[a-z][a-z0-9+.-]*:|\/).*?):(\d+):(\d+)$/i;
/** What SpiderMonkey writes in the place of an address for evaluated code: "url line 7 > eval". */
const GECKO_EVAL = /^(.*?) line (\d+) > /;
/** What stands in the place of a name. */
const NAMELESS = new Set(['<anonymous>', 'global code', 'module code', 'eval code']);

/**
 * @param {string} line
 * @returns {Frame | undefined}
 */
function parseLine(line) {
  const v8 = (line.includes('eval at ') ? V8_EVAL.exec(line) : null) ?? V8.exec(line);
  const m = v8 ?? AT.exec(line);
  if (!m) return undefined;
  const evaluated = v8 ? null : GECKO_EVAL.exec(m[2]);
  const url = evaluated ? evaluated[1] : m[2];
  // Before the name stands what the call waited for: "async ", "async*", "setTimeout handler*".
  const name = (m[1] ?? '').replace(v8 ? /^(?:async|new) / : /^(?:async |.*\*)/, '').slice(0, 200);
  return {
    function: NAMELESS.has(name) ? '' : name, url: shown(url.slice(0, 2000)),
    line: Number(evaluated ? evaluated[2] : m[3]), column: evaluated ? 1 : Number(m[4]),
  };
}
