import { encode, encodeShort, encodeTable } from './value.js';
import { cut, wellFormed } from './text.js';
import { callSiteJSON } from './stack.js';

/** @typedef {import('./protocol.js').Json} Json */
/** @typedef {import('./patch.js').Patches} Patches */
/** @typedef {import('./faults.js').Faults} Faults */

/** How large one message gets before its arguments are shortened, in UTF-16 units of JSON. */
const MESSAGE_SIZE = 64 << 10;
const MAX_ARGS = 100;
/** How large a table gets, whose rows are told with their columns. */
const TABLE_SIZE = 128 << 10;

/** The console methods, and what the protocol calls them. */
const TYPES = Object.freeze({
  log: 'log', debug: 'debug', info: 'info', warn: 'warning', error: 'error',
  dir: 'dir', dirxml: 'dirxml', table: 'table', trace: 'trace', clear: 'clear',
  group: 'startGroup', groupCollapsed: 'startGroupCollapsed', groupEnd: 'endGroup',
  assert: 'assert', count: 'count', countReset: 'warning', time: 'warning', timeLog: 'log', timeEnd: 'timeEnd',
});

/** Methods that print their own name where they have nothing to print; others print nothing then. */
const NAMED = new Set(['trace', 'clear', 'group', 'groupCollapsed', 'groupEnd', 'assert']);

/**
 * @typedef {object} ConsoleOptions
 * @property {Console} console
 * @property {Patches} patches
 * @property {Faults} faults
 * @property {(topic: 'message', data: string) => void} record
 * @property {(args: unknown[]) => number} [keep] keeps live arguments for those who look, under a number; 0 if nobody does
 * @property {() => number} now
 */

/**
 * Records what the page writes to its console. The page's call runs first and
 * unchanged; what it logs is encoded at once, since it may change later.
 * @param {ConsoleOptions} o
 */
export function captureConsole({ console, patches, faults, record, keep, now }) {
  const memory = new Memory(now);
  // Encoding may run a Proxy's traps, and those may log.
  let busy = false;
  for (const [name, type] of Object.entries(TYPES)) {
    patches.method(console, name, original => ({
      /** @this {unknown} @param {unknown[]} args */
      [name](...args) {
        const result = Reflect.apply(original, this, args);
        if (patches.active && !busy) {
          busy = true;
          try {
            const shown = memory.shown(name, args);
            if (shown) record('message', messageJSON(shown.type ?? type, shown.args, keep?.(shown.args.slice(0, MAX_ARGS)) ?? 0));
          } catch (e) {
            faults.add(e);
          } finally {
            busy = false;
          }
        }
        return result;
      },
    })[name]);
  }
}

/**
 * @param {string} type
 * @param {unknown[]} args
 * @param {number} kept the number under which the live arguments are kept, 0 for none
 * @returns {string}
 */
function messageJSON(type, args, kept) {
  const list = args.length > MAX_ARGS ? args.slice(0, MAX_ARGS) : args;
  const site = callSiteJSON();
  const ref = kept ? `,"ref":${kept}` : '';
  const table = type === 'table';
  const text = `{"type":"${type}","args":${JSON.stringify(list.map((v, i) => table && i === 0 ? encodeTable(v, TABLE_SIZE) : encode(v)))},"stack":${site.json}${ref}}`;
  if (text.length > MESSAGE_SIZE + (table ? TABLE_SIZE : 0)) {
    return `{"type":"${type}","args":${JSON.stringify(list.map(v => encodeShort(v)))},"stack":${JSON.stringify(site.frames.slice(0, 10))}${ref}}`;
  }
  return text;
}

/** What console methods remember between calls, so that what they print can be told. */
class Memory {
  /** @param {() => number} now */
  constructor(now) {
    this.now = now;
    /** @type {Map<string, number>} */
    this.counts = new Map();
    /** @type {Map<string, number>} */
    this.timers = new Map();
  }

  /**
   * @param {string} name
   * @param {unknown[]} args
   * @returns {{args: unknown[], type?: string} | undefined} what the call prints, and as what if not as its method does; undefined if nothing
   */
  shown(name, args) {
    switch (name) {
      case 'assert':
        if (args[0]) return undefined;
        args = args.slice(1);
        break;
      case 'count': {
        const label = labelOf(args);
        const n = (this.counts.get(label) ?? 0) + 1;
        bounded(this.counts, label, n);
        return { args: [`${label}: ${n}`] };
      }
      case 'countReset': {
        const label = labelOf(args);
        return this.counts.delete(label) ? undefined : { args: [`Count for '${label}' does not exist`] };
      }
      case 'time': {
        const label = labelOf(args);
        if (this.timers.has(label)) return { args: [`Timer '${label}' already exists`] };
        bounded(this.timers, label, this.now());
        return undefined;
      }
      case 'timeLog': case 'timeEnd': {
        const label = labelOf(args);
        const start = this.timers.get(label);
        if (start === undefined) return { args: [`Timer '${label}' does not exist`], type: 'warning' };
        if (name === 'timeEnd') this.timers.delete(label);
        return { args: [`${label}: ${Math.round((this.now() - start) * 1000) / 1000} ms`, ...(name === 'timeLog' ? args.slice(1) : [])] };
      }
    }
    if (args.length > 0) return { args };
    return NAMED.has(name) ? { args: [`console.${name}`] } : undefined;
  }
}

/**
 * Sets an entry of a map that a page could otherwise grow for ever.
 * @param {Map<string, number>} map
 * @param {string} key
 * @param {number} value
 */
function bounded(map, key, value) {
  if (map.size < 1000 || map.has(key)) map.set(key, value);
}

/**
 * @param {unknown[]} args
 * @returns {string}
 */
function labelOf(args) {
  return args[0] === undefined ? 'default' : cut(wellFormed(String(args[0])), 200);
}
