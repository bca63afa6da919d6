import { encode, encodeShort } from './value.js';
import { cut, wellFormed } from './text.js';
import { callSite } from './stack.js';

/** @typedef {import('./protocol.js').Json} Json */
/** @typedef {import('./patch.js').Patches} Patches */
/** @typedef {import('./faults.js').Faults} Faults */

/** How large one message gets before its arguments are shortened, in UTF-16 units of JSON. */
const MESSAGE_SIZE = 64 << 10;
const MAX_ARGS = 100;

/** The console methods, and what the protocol calls them. */
const TYPES = Object.freeze({
  log: 'log', debug: 'debug', info: 'info', warn: 'warning', error: 'error',
  dir: 'dir', dirxml: 'dirxml', table: 'table', trace: 'trace', clear: 'clear',
  group: 'startGroup', groupCollapsed: 'startGroupCollapsed', groupEnd: 'endGroup',
  assert: 'assert', count: 'count', countReset: '', time: '', timeLog: 'timeEnd', timeEnd: 'timeEnd',
});

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
            if (shown && type) record('message', messageJSON(type, shown, keep?.(shown.slice(0, MAX_ARGS)) ?? 0));
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
  const list = args.slice(0, MAX_ARGS);
  const ref = kept || undefined;
  const stack = callSite();
  let text = JSON.stringify({ type, args: list.map(v => encode(v)), stack, ref });
  if (text.length > MESSAGE_SIZE) text = JSON.stringify({ type, args: list.map(v => encodeShort(v)), stack: stack.slice(0, 10), ref });
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
   * @returns {unknown[] | undefined} what the call prints, undefined if nothing
   */
  shown(name, args) {
    switch (name) {
      case 'assert': return args[0] ? undefined : args.slice(1);
      case 'count': {
        const label = labelOf(args);
        const n = (this.counts.get(label) ?? 0) + 1;
        bounded(this.counts, label, n);
        return [`${label}: ${n}`];
      }
      case 'countReset':
        this.counts.delete(labelOf(args));
        return undefined;
      case 'time':
        if (!this.timers.has(labelOf(args))) bounded(this.timers, labelOf(args), this.now());
        return undefined;
      case 'timeLog': case 'timeEnd': {
        const label = labelOf(args);
        const start = this.timers.get(label);
        if (start === undefined) return undefined;
        if (name === 'timeEnd') this.timers.delete(label);
        return [`${label}: ${Math.round((this.now() - start) * 1000) / 1000} ms`, ...(name === 'timeLog' ? args.slice(1) : [])];
      }
    }
    return args;
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
