import { CommandError } from './failure.js';
import { shownAddress } from './stack.js';

/** How large a script or source map may be, and how many scripts are listed. */
const MAX_TEXT = 8 << 20;
const MAX_SCRIPTS = 2000;
/** How much text is kept; what is beyond is read again when somebody asks. */
const MAX_KEPT = 64 << 20;
/** How many scripts are read at once. */
const AT_ONCE = 4;

/** @typedef {{url: string, esm?: boolean, page?: boolean}} Found */

/**
 * Where scripts come from.
 * @typedef {object} ScriptGround
 * @property {() => Found[]} listScripts the scripts that the page loaded so far
 * @property {(found: (f: Found) => void) => () => void} watchScripts tells of those that it loads later
 * @property {(url: string) => boolean} readable whether the page may read what is at an address
 */

/** @typedef {{id: string, url: string, esm: boolean, page: boolean, text: string | undefined, parsed: object | undefined}} Script */

/**
 * The scripts of a page, which are read from the browser's cache when the first
 * session asks for them. It is shared by all sessions.
 */
export class Catalog {
  /**
   * @param {ScriptGround} ground
   * @param {typeof fetch} request the environment's own, which nobody captures
   */
  constructor(ground, request) {
    this.ground = ground;
    this.request = request;
    /** @type {Map<string, Script>} by address */
    this.scripts = new Map();
    /** @type {Map<string, Script>} */
    this.byID = new Map();
    /** @type {Map<string, string>} addresses of source maps, as scripts name them and in full, in full */
    this.maps = new Map();
    /** @type {Set<(parsed: object) => void>} */
    this.watchers = new Set();
    /** @type {Script[]} */
    this.waiting = [];
    this.running = 0;
    this.kept = 0;
    this.lastID = 0;
    /** @type {(() => void) | undefined} */
    this.unwatch = undefined;
  }

  /**
   * @param {(parsed: object) => void} watcher
   * @returns {object[]} what is known already
   */
  watch(watcher) {
    this.watchers.add(watcher);
    this.unwatch ??= this.ground.watchScripts(f => this.found(f));
    for (const f of this.ground.listScripts()) this.found(f);
    return [...this.scripts.values()].flatMap(s => s.parsed ?? []);
  }

  /** @param {(parsed: object) => void} watcher */
  leave(watcher) {
    this.watchers.delete(watcher);
    if (this.watchers.size > 0) return;
    this.unwatch?.();
    this.unwatch = undefined;
    // Nobody looks: texts are in the browser's cache still.
    for (const s of this.scripts.values()) s.text = undefined;
    this.kept = 0;
  }

  /** @param {Found} f */
  found({ url, esm, page }) {
    if (this.scripts.has(url) || this.scripts.size >= MAX_SCRIPTS) return;
    /** @type {Script} */
    const s = { id: String(++this.lastID), url, esm: Boolean(esm), page: Boolean(page), text: undefined, parsed: undefined };
    this.scripts.set(url, s);
    this.byID.set(s.id, s);
    if (!this.ground.readable(url)) return;
    this.waiting.push(s);
    this.next();
  }

  next() {
    while (this.running < AT_ONCE && this.waiting.length > 0) {
      const s = /** @type {Script} */ (this.waiting.shift());
      this.running++;
      this.parse(s).catch(() => {}).finally(() => {
        this.running--;
        this.next();
      });
    }
  }

  /** @param {Script} s */
  async parse(s) {
    const text = await this.read(s);
    const lines = text.split('\n');
    const map = sourceMapOf(text);
    if (map && !map.startsWith('data:')) {
      const full = absolute(map, s.url);
      this.maps.set(map, full).set(full, full).set(shownAddress(map), full).set(shownAddress(full), full);
    }
    s.parsed = {
      scriptId: s.id, url: shownAddress(s.url), startLine: 0, startColumn: 0, endLine: lines.length - 1, endColumn: lines[lines.length - 1].length,
      executionContextId: 1, hash: '', length: text.length, ...(s.esm ? { isModule: true } : {}), ...(map && !s.page ? { sourceMapURL: map.startsWith('data:') ? map : shownAddress(map) } : {}),
    };
    for (const w of this.watchers) w(s.parsed);
  }

  /**
   * @param {Script} s
   * @returns {Promise<string>}
   */
  async read(s) {
    if (s.text !== undefined) return s.text;
    const text = await this.fetch(s.url, s.page);
    if (this.watchers.size > 0 && this.kept + text.length <= MAX_KEPT) {
      s.text = text;
      this.kept += text.length;
    }
    return text;
  }

  /**
   * @param {string} url
   * @param {boolean} cached whether it must come from the cache: a page may not like to be asked for twice
   * @returns {Promise<string>}
   */
  async fetch(url, cached) {
    const response = await this.request(url, { cache: cached ? 'only-if-cached' : 'force-cache', mode: 'same-origin', credentials: 'same-origin' });
    if (!response.ok) throw new CommandError('object-not-found', `the server of ${url} answers with status ${response.status}`);
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { value, done } = await reader?.read() ?? { value: undefined, done: true };
      if (done) return text + decoder.decode();
      text += decoder.decode(value, { stream: true });
      if (text.length > MAX_TEXT) {
        await reader?.cancel();
        throw new CommandError('result-too-large', `${url} has more than ${MAX_TEXT} characters`);
      }
    }
  }
}

/** The scripts of a page as one session sees them. */
export class Sources {
  /**
   * @param {Catalog} catalog
   * @param {(event: string, data: object) => void} emit
   */
  constructor(catalog, emit) {
    this.catalog = catalog;
    this.watcher = (/** @type {object} */ parsed) => emit('sources.scriptParsed', parsed);
  }

  /** @returns {{scripts: object[]}} */
  enable() {
    return { scripts: this.catalog.watch(this.watcher) };
  }

  /**
   * @param {unknown} id
   * @returns {Promise<{scriptSource: string}>}
   */
  async text(id) {
    const s = this.catalog.byID.get(String(id));
    if (!s) throw new CommandError('object-not-found', `the page has no script ${id}`);
    if (!this.catalog.ground.readable(s.url)) throw new CommandError('refused', `${s.url} is of another origin, so the page cannot read its text`);
    return { scriptSource: await this.catalog.read(s) };
  }

  /**
   * @param {unknown} url
   * @returns {Promise<{content: string}>}
   */
  async load(url) {
    const full = this.catalog.maps.get(String(url));
    if (full === undefined) throw new CommandError('refused', 'only source maps that a script of the page names are loaded');
    if (!this.catalog.ground.readable(full)) throw new CommandError('refused', `${full} is of another origin, so the page cannot read it`);
    return { content: await this.catalog.fetch(full, false) };
  }

  /** Announces nothing more. */
  close() {
    this.catalog.leave(this.watcher);
  }
}

/**
 * @param {string} text
 * @returns {string | undefined} what the last comment of its kind says
 */
function sourceMapOf(text) {
  const tail = text.slice(-(1 << 20));
  return [...tail.matchAll(/^\s*\/[/*][#@] ?sourceMappingURL=([^\s'"]+)(?: ?\*\/)?\s*$/gm)].at(-1)?.[1];
}

/**
 * @param {string} url
 * @param {string} base
 * @returns {string}
 */
function absolute(url, base) {
  try {
    return new URL(url, base).href;
  } catch {
    return url;
  }
}
