/** @typedef {{function: string, url: string, line: number, column: number}} Frame */

/** Where natscope's own modules are: the folder above this one. */
const HOME = new URL('../', import.meta.url).href;
const OWN = ['shared/', 'browser/', 'node/', 'client.js'].map(p => HOME + p);

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
  if (!stack.includes(HOME)) return stack;
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

/**
 * @param {string} line
 * @returns {Frame | undefined}
 */
function parseLine(line) {
  // "    at name (url:line:column)" or "    at url:line:column"
  let m = /^\s*at (?:(.*?) \()?((?:[a-z][a-z0-9+.-]*:|\/|<anonymous>).*?):(\d+):(\d+)\)?$/i.exec(line);
  // "name@url:line:column"
  m ??= /^(?:(.*?)@)?((?:[a-z][a-z0-9+.-]*:|\/).*?):(\d+):(\d+)$/i.exec(line);
  if (!m) return undefined;
  const name = (m[1] ?? '').replace(/^(async|new) /, '').slice(0, 200);
  return { function: name === '<anonymous>' ? '' : name, url: shown(m[2].slice(0, 2000)), line: Number(m[3]), column: Number(m[4]) };
}
