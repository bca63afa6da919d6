import { encode } from './value.js';
import { follow, hasMarker, replaceAt } from './path.js';
import { componentAt, elementsOf } from './elements.js';
import { messageOf } from './read.js';
import { CommandError } from './failure.js';
import { isUnsupported } from './unsupported.js';

/** @typedef {import('./tree.js').TreeNode} TreeNode */
/** @typedef {import('./path.js').Step} Step */
/** @typedef {import('./unsupported.js').Unsupported} Unsupported */

/** How long a highlight or a pick lives that nobody repeats, in milliseconds. */
const PATIENCE = 30000;
/** How many commands may run at once: only setters and the dev server take time. */
const MAX_RUNNING = 16;
/** How many entries of a wide value are sent at most, whatever is asked for. */
const MAX_ENTRIES = 2000;

/**
 * What shows where something is on the page.
 * @typedef {object} Overlay
 * @property {(elements: object[], label: string) => void} show
 * @property {() => void} hide takes everything out of the page that show put in
 */

/**
 * @typedef {object} PickEvents
 * @property {(element: object) => void} over the pointer is over another element
 * @property {(element: object | undefined) => void} done an element was clicked, or the person gave up
 */

/**
 * What differs between environments in what commands do.
 * @typedef {object} Tools
 * @property {() => Overlay | Unsupported} overlay
 * @property {(events: PickEvents) => (() => void) | Unsupported} pick begins a pick and returns what ends it
 * @property {(loc: string, request: typeof fetch) => Promise<boolean> | Unsupported} openInEditor
 */

/**
 * @typedef {object} CommandEnvironment
 * @property {any} scope
 * @property {typeof fetch} fetch
 * @property {(f: () => void, ms: number) => unknown} setTimer
 * @property {(timer: any) => void} clearTimer
 */

/**
 * @typedef {object} CommandOptions
 * @property {CommandEnvironment} env
 * @property {Tools} tools
 * @property {() => import('./client.js').AnyTree} tree
 * @property {(text: string) => void} send
 * @property {Set<(message: any) => void>} [panels] who hears what runespect panels elsewhere send
 * @property {import('./faults.js').Faults} faults
 */

/**
 * Carries out what DevTools and other tools ask of the page's components. Each
 * command is answered once, and what goes wrong in it is told and not thrown.
 */
export class Commands {
  /** @param {CommandOptions} options */
  constructor(options) {
    this.o = options;
    this.running = 0;
    this.stopped = false;
    /** @type {Overlay | undefined} */
    this.overlay = undefined;
    /** @type {unknown} */
    this.highlightTimer = undefined;
    /** @type {(() => void) | undefined} ends the pick that runs */
    this.endPick = undefined;
    /** @type {unknown} */
    this.pickTimer = undefined;
    /** @type {number} the component under the pointer, as far as it was told */
    this.over = 0;
    /** @type {(() => void) | undefined} gives the global name back */
    this.restoreGlobal = undefined;
    /** @type {Record<string, (params: any) => unknown>} */
    this.methods = {
      'tree.inspect': p => this.inspect(p),
      'tree.edit': p => this.edit(p),
      'tree.highlight': p => this.highlight(p),
      'tree.pick': p => this.pick(p),
      'tree.log': p => this.log(p),
      'tree.storeGlobal': p => this.storeGlobal(p),
      'tree.open': p => this.open(p),
      'runespect.send': p => this.pass(p),
    };
  }

  /** @param {import('./protocol.js').CommandMessage} m */
  async receive(m) {
    if (this.stopped) return;
    if (this.running >= MAX_RUNNING) {
      this.answer(m.id, { code: 'busy', message: `${MAX_RUNNING} commands run in this page already` });
      return;
    }
    this.running++;
    try {
      const own = this.o.tree().methods;
      const run = own && Object.hasOwn(own, m.method) ? own[m.method] : Object.hasOwn(this.methods, m.method) ? this.methods[m.method] : undefined;
      if (!run) throw new CommandError('unsupported', `this page does not support ${m.method}`);
      this.answer(m.id, undefined, await run(m.params));
    } catch (e) {
      this.answer(m.id, { code: e instanceof CommandError ? e.code : 'failed', message: messageOf(e) });
    } finally {
      this.running--;
    }
  }

  /**
   * @param {number} id
   * @param {{code: string, message: string}} [error]
   * @param {unknown} [result]
   */
  answer(id, error, result) {
    if (this.stopped) return;
    this.o.faults.run(() => this.o.send(JSON.stringify(error ? { type: 'answer', id, ok: false, error } : { type: 'answer', id, ok: true, result })));
  }

  /**
   * @param {'picked' | 'highlighted'} event
   * @param {number} id
   */
  tell(event, id) {
    this.o.faults.run(() => this.o.send(JSON.stringify({ type: 'event', event, data: { id } })));
  }

  /**
   * @param {{id?: unknown} | undefined} params
   * @returns {TreeNode}
   */
  node(params) {
    const id = params?.id;
    if (typeof id !== 'number') throw new CommandError('malformed', 'id must be the number of a component');
    const n = this.o.tree().get(id);
    if (!n) throw new CommandError('object-not-found', `component ${id} is not on the page any more`);
    return n;
  }

  /** @param {{id: number, path?: unknown, limit?: unknown}} p */
  inspect(p) {
    const [symbol, ...steps] = readPath(p?.path);
    if (typeof symbol !== 'string') throw new CommandError('malformed', 'path must begin with the name of a value');
    const n = typeof p.id === 'number' ? this.o.tree().get(p.id) : undefined;
    if (!n || !Object.hasOwn(n.values, symbol)) return {};
    const found = follow(n.values[symbol], steps);
    const limit = typeof p.limit === 'number' && p.limit > 0 ? Math.min(p.limit, MAX_ENTRIES) : undefined;
    return found ? { value: encode(found.value, limit) } : {};
  }

  /** @param {{id: number, symbol?: unknown, path?: unknown, value?: unknown}} p */
  async edit(p) {
    const n = this.node(p);
    const { symbol, value } = p;
    if (typeof symbol !== 'string' || value === undefined) throw new CommandError('malformed', 'symbol and value are missing');
    const steps = readPath(p.path ?? []);
    const set = this.o.tree().setter(n, symbol);
    if (!set) throw new CommandError('refused', `${symbol} of ${n.name} cannot be set: the page gave no setter for it`);
    if (hasMarker(value)) throw new CommandError('refused', 'the new value stands for something that was never loaded');
    await set(steps.length > 0 ? replaceAt(n.values[symbol], steps, value) : value);
    return undefined;
  }

  /** @param {{id?: unknown}} p */
  highlight(p) {
    this.o.env.clearTimer(this.highlightTimer);
    if (p?.id === 0) {
      this.overlay?.hide();
      return undefined;
    }
    const n = this.node(p);
    const elements = elementsOf(n);
    if (elements.length === 0) {
      this.overlay?.hide();
      throw new CommandError('object-not-found', `${n.name} has no element on the page`);
    }
    this.show(n, elements);
    this.highlightTimer = this.o.env.setTimer(() => this.overlay?.hide(), PATIENCE);
    return undefined;
  }

  /**
   * @param {TreeNode} n
   * @param {object[]} elements
   */
  show(n, elements) {
    this.overlay ??= supported(this.o.tools.overlay());
    this.overlay.show(elements, n.name);
  }

  /** @param {{active?: unknown}} p */
  pick(p) {
    const { env, tools } = this.o;
    env.clearTimer(this.pickTimer);
    if (p?.active !== true) {
      this.stopPick();
      return undefined;
    }
    this.endPick ??= supported(tools.pick({
      over: e => this.o.faults.run(() => this.pointed(e)),
      done: e => this.o.faults.run(() => this.picked(e)),
    }));
    this.pickTimer = env.setTimer(() => this.stopPick(), PATIENCE);
    return undefined;
  }

  /** @param {object} element */
  pointed(element) {
    const n = componentAt(this.o.tree(), element);
    if (n) this.show(n, elementsOf(n));
    else this.overlay?.hide();
    if (this.over === (n?.id ?? 0)) return;
    this.over = n?.id ?? 0;
    this.tell('highlighted', this.over);
  }

  /** @param {object | undefined} element */
  picked(element) {
    const n = element && componentAt(this.o.tree(), element);
    this.stopPick();
    this.tell('picked', n?.id ?? 0);
  }

  stopPick() {
    this.o.env.clearTimer(this.pickTimer);
    if (!this.endPick) return;
    this.endPick();
    this.endPick = undefined;
    this.over = 0;
    this.overlay?.hide();
  }

  /** @param {{id: number}} p */
  log(p) {
    const n = this.node(p);
    this.o.env.scope.console.log(n.name, { ...n.values }, ...elementsOf(n));
    return undefined;
  }

  /** @param {{id: number, symbol?: unknown}} p */
  storeGlobal(p) {
    const n = this.node(p);
    const symbol = p.symbol ?? '';
    if (typeof symbol !== 'string') throw new CommandError('malformed', 'symbol must be a text');
    if (symbol !== '' && !Object.hasOwn(n.values, symbol)) throw new CommandError('object-not-found', `${n.name} has no value ${symbol}`);
    const { scope } = this.o.env;
    const value = symbol === '' ? { ...n.values } : n.values[symbol];
    const before = Object.getOwnPropertyDescriptor(scope, '$r');
    this.restoreGlobal ??= () => {
      if (before) Object.defineProperty(scope, '$r', before);
      else delete scope.$r;
    };
    Object.defineProperty(scope, '$r', { value, writable: true, configurable: true, enumerable: before?.enumerable ?? false });
    return { name: '$r' };
  }

  /**
   * A runespect panel elsewhere says something to an agent in this page.
   * @param {{message?: any}} p
   */
  pass(p) {
    if (p?.message?.source !== 'runespect') throw new CommandError('malformed', 'message must be one of runespect');
    if (!this.o.panels?.size) throw new CommandError('refused', 'no runespect agent of this page has a transport over natscope; connect one with natscope.runespect()');
    for (const f of this.o.panels) this.o.faults.run(() => f(p.message));
    return undefined;
  }

  /** @param {{loc?: unknown}} p */
  async open(p) {
    if (typeof p?.loc !== 'string' || p.loc === '') throw new CommandError('malformed', 'loc must be a file, or file:line');
    const taken = await supported(this.o.tools.openInEditor(p.loc, this.o.env.fetch));
    if (!taken) throw new CommandError('refused', 'the server of this page does not open files in an editor; development servers such as Vite do');
    return undefined;
  }

  /** Ends what is shown and picked, while nobody is there to look. */
  pause() {
    this.o.env.clearTimer(this.highlightTimer);
    this.stopPick();
    this.overlay?.hide();
  }

  /** Takes everything back. */
  stop() {
    this.pause();
    this.stopped = true;
    this.o.faults.run(() => this.restoreGlobal?.());
  }
}

/**
 * @template T
 * @param {T | Unsupported} v
 * @returns {T}
 */
function supported(v) {
  if (isUnsupported(v)) throw new CommandError('unsupported', v.message);
  return /** @type {T} */ (v);
}

/**
 * @param {unknown} path
 * @returns {Step[]}
 */
function readPath(path) {
  if (!Array.isArray(path) || path.length > 64 || !path.every(s => typeof s === 'string' || Number.isSafeInteger(s) && s >= 0)) {
    throw new CommandError('malformed', 'path must be a list of names and places from 0');
  }
  return path;
}
