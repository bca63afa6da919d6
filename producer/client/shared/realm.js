import { CommandError } from './failure.js';
import { Handles } from './handles.js';
import { messageOf } from './read.js';
import { Mirror } from './remote.js';
import { propertiesOf } from './properties.js';
import { Evaluator, detailsOf, settle, sideEffect } from './evaluate.js';
import { commandLine } from './commandline.js';

/** @typedef {import('./evaluate.js').Outcome} Outcome */
/** @typedef {import('./remote.js').RemoteObject} RemoteObject */

/** How many sessions a page serves at once. */
const MAX_SESSIONS = 64;
/** How many console calls keep their arguments, and for how long in milliseconds, while anybody looks. */
const KEPT_CALLS = 1000;
const KEPT_FOR = 600000;
/** How much one answer may be, in UTF-16 units of JSON. */
const MAX_ANSWER = 32 << 20;

/**
 * The trees of the page, as far as a realm needs to know them.
 * @typedef {object} Trees
 * @property {(id: number) => object | undefined} live the live object of a node
 * @property {(v: object) => {id: number, name: string} | undefined} nodeOf the node that an object stands for
 */

/**
 * What differs between environments in what a realm does.
 * @typedef {import('./describe.js').Host & import('./evaluate.js').Ground & {heap: () => object | undefined}} Inspection
 */

/**
 * @typedef {object} RealmOptions
 * @property {any} scope
 * @property {Inspection} inspection
 * @property {Trees} trees
 * @property {(o: {emit: (event: string, data: object) => void}) => import('./sources.js').Sources} sources
 * @property {(text: string) => void} send
 * @property {import('./faults.js').Faults} faults
 * @property {() => number} now
 * @property {() => number} handles how many values a session holds at most
 */

/** What the page holds for one DevTools connection. */
class Session {
  /**
   * @param {Realm} realm
   * @param {string} id
   */
  constructor(realm, id) {
    this.realm = realm;
    this.id = id;
    const { inspection, trees, handles } = realm.o;
    this.mirror = new Mirror(new Handles(handles()), inspection, v => trees.nodeOf(v)?.name);
    /** @type {unknown} what $_ is */
    this.last = undefined;
    /** @type {unknown[]} what $0 to $4 are */
    this.inspected = [];
    /** @type {import('./sources.js').Sources | undefined} */
    this.sources = undefined;
  }

  /**
   * @param {string} event
   * @param {object} data
   */
  emit(event, data) {
    this.realm.o.faults.run(() => this.realm.o.send(JSON.stringify({ type: 'event', session: this.id, event, data })));
  }

  close() {
    this.mirror.handles.clear();
    this.sources?.close();
  }
}

/**
 * The live world of a page for those who look at it: it evaluates, shows
 * objects and holds them, for each session apart. It is loaded with the first session.
 */
export class Realm {
  /** @param {RealmOptions} o */
  constructor(o) {
    this.o = o;
    this.evaluator = new Evaluator(o.scope, o.inspection);
    /** @type {Map<string, Session>} */
    this.sessions = new Map();
    /** @type {Map<number, {args: unknown[], t: number}>} console calls, oldest first */
    this.calls = new Map();
    this.lastRef = 0;
    this.lastException = 0;
    /** @type {Record<string, (s: Session, p: any) => unknown>} */
    this.methods = {
      'runtime.evaluate': (s, p) => this.evaluate(s, p),
      'runtime.compileScript': (s, p) => this.compile(s, p),
      'runtime.getProperties': (s, p) => propertiesOf(s.mirror, p.objectId, p),
      'runtime.callFunctionOn': (s, p) => this.callFunctionOn(s, p),
      'runtime.awaitPromise': (s, p) => this.awaitPromise(s, p),
      'runtime.releaseObject': (s, p) => s.mirror.handles.release(p.objectId),
      'runtime.releaseObjectGroup': (s, p) => s.mirror.handles.releaseGroup(p.objectGroup),
      'runtime.globalLexicalScopeNames': () => ({ names: [...this.evaluator.lexical] }),
      'runtime.getExceptionDetails': (s, p) => this.exceptionDetails(s, p),
      'runtime.getHeapUsage': () => this.heap(),
      'runtime.queryObjects': () => unable('a page cannot list the objects of a prototype; take a heap snapshot through natscope attach'),
      'runtime.terminateExecution': () => unable('a page cannot stop code that runs; close its tab, or use natscope attach'),
      'console.resolve': (s, p) => this.resolveArgument(s, p),
      'tree.resolve': (s, p) => this.resolveNode(s, p),
      'tree.nodeOf': (s, p) => this.nodeOf(s, p),
      'tree.inspected': (s, p) => this.setInspected(s, p),
      'runtime.enable': () => ({}),
      'runtime.disable': () => ({}),
      'runtime.getIsolateId': () => ({ id: 'page' }),
      'sources.disable': s => s.sources?.close(),
      'sources.enable': s => (s.sources ??= o.sources(s)).enable(),
      'sources.getScriptSource': (s, p) => (s.sources ??= o.sources(s)).text(p.scriptId),
      'sources.loadResource': (s, p) => (s.sources ??= o.sources(s)).load(p.url),
    };
  }

  /**
   * @param {string} method
   * @returns {boolean} whether the realm is who answers a method
   */
  static answers(method) {
    return /^(?:session|runtime|console|sources|debugger|profiler|heap)\./.test(method) || ['tree.resolve', 'tree.nodeOf', 'tree.inspected'].includes(method);
  }

  /** @param {import('./protocol.js').CommandMessage} m */
  async receive(m) {
    try {
      this.answer(m.id, undefined, await this.do(m));
    } catch (e) {
      this.answer(m.id, { code: e instanceof CommandError ? e.code : 'failed', message: messageOf(e) });
    }
  }

  /**
   * @param {import('./protocol.js').CommandMessage} m
   * @returns {unknown}
   */
  do({ method, params, session = '' }) {
    if (method === 'session.open') return this.open(session);
    if (method === 'session.close') return this.closeSession(session);
    const s = this.sessions.get(session);
    if (!s) throw new CommandError('no-session', 'no session; open one');
    if (/^debugger\./.test(method)) unable('a page cannot set breakpoints or step in itself; start the browser with --remote-debugging-port and use natscope attach to debug its scripts');
    if (!Object.hasOwn(this.methods, method)) unable(`a page cannot do ${method}`);
    if (typeof params.contextId === 'number' && params.contextId !== 1) throw new CommandError('object-not-found', 'the page has no such execution context');
    return this.methods[method](s, params);
  }

  /**
   * @param {number} id
   * @param {{code: string, message: string}} [error]
   * @param {unknown} [result]
   */
  answer(id, error, result) {
    this.o.faults.run(() => {
      const text = JSON.stringify(error ? { ok: false, error } : { ok: true, result });
      if (text.length > MAX_ANSWER) {
        this.answer(id, { code: 'result-too-large', message: `the answer has ${text.length} characters; at most ${MAX_ANSWER} are sent` });
        return;
      }
      for (const part of answerParts(id, text)) this.o.send(part);
    });
  }

  /** @param {string} id */
  open(id) {
    if (!this.sessions.has(id)) {
      if (this.sessions.size >= MAX_SESSIONS) throw new CommandError('busy', `${MAX_SESSIONS} sessions look at this page already`);
      this.sessions.set(id, new Session(this, id));
    }
    return {};
  }

  /** @param {string} id */
  closeSession(id) {
    this.sessions.get(id)?.close();
    this.sessions.delete(id);
    if (this.sessions.size === 0) this.calls.clear();
    return {};
  }

  /** Ends every session and lets go of all that they held. */
  close() {
    for (const id of [...this.sessions.keys()]) this.closeSession(id);
  }

  /**
   * Keeps the arguments of a console call while anybody looks.
   * @param {unknown[]} args
   * @returns {number} the number under which they are kept, 0 for none
   */
  keep(args) {
    if (this.sessions.size === 0) return 0;
    const now = this.o.now();
    for (const [ref, call] of this.calls) {
      if (this.calls.size < KEPT_CALLS && now - call.t < KEPT_FOR) break;
      this.calls.delete(ref);
    }
    this.calls.set(++this.lastRef, { args, t: now });
    return this.lastRef;
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  evaluate(s, p) {
    const code = text(p.expression, 'expression');
    if (p.throwOnSideEffect) return this.result(s, this.evaluator.pure(code) ?? sideEffect(), p);
    const tools = p.includeCommandLineAPI ? commandLine(s, this.o) : undefined;
    const outcome = this.evaluator.run(code, { repl: p.replMode === true, tools });
    return this.finish(s, outcome, p, p.objectGroup === 'console');
  }

  /**
   * @param {Session} s
   * @param {Outcome | Promise<Outcome>} outcome
   * @param {any} p
   * @param {boolean} [remember] whether the value becomes $_
   * @returns {object | Promise<object>}
   */
  finish(s, outcome, p, remember) {
    if (outcome instanceof Promise) return outcome.then(o => this.finish(s, o, p, remember));
    if ('value' in outcome && p.awaitPromise) return settle(outcome.value).then(o => this.result(s, o, p));
    if ('value' in outcome && remember) s.last = outcome.value;
    return this.result(s, outcome, p);
  }

  /**
   * @param {Session} s
   * @param {Outcome} outcome
   * @param {any} p
   * @returns {object}
   */
  result(s, outcome, p) {
    const group = typeof p.objectGroup === 'string' ? p.objectGroup : undefined;
    if ('value' in outcome) return { result: s.mirror.wrap(outcome.value, { group, byValue: p.returnByValue === true, preview: p.generatePreview === true }) };
    const exception = s.mirror.wrap(outcome.thrown, { group, preview: p.generatePreview === true });
    return { result: exception, exceptionDetails: this.details(outcome.thrown, outcome.text, exception) };
  }

  /**
   * @param {unknown} thrown
   * @param {string} text
   * @param {RemoteObject} exception
   */
  details(thrown, text, exception) {
    return { exceptionId: ++this.lastException, ...detailsOf(thrown, text), exception };
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  compile(s, p) {
    const error = this.evaluator.check(text(p.expression, 'expression'));
    return error === undefined ? {} : { exceptionDetails: this.details(error, 'Uncaught', s.mirror.wrap(error)) };
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  callFunctionOn(s, p) {
    if (p.throwOnSideEffect) return this.result(s, sideEffect(), p);
    const held = p.objectId === undefined ? undefined : s.mirror.handles.get(p.objectId);
    const args = (Array.isArray(p.arguments) ? p.arguments : []).map((/** @type {any} */ a) => argument(s, a));
    const declaration = text(p.functionDeclaration, 'functionDeclaration');
    const group = p.objectGroup ?? held?.group;
    return this.finish(s, this.evaluator.call(declaration, held ? held.value : this.o.scope, args), { ...p, objectGroup: group });
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  awaitPromise(s, p) {
    const { value, group } = s.mirror.handles.get(p.promiseObjectId);
    if (!(value instanceof Promise)) throw new CommandError('failed', 'Could not find promise with given id');
    return settle(value).then(o => this.result(s, o, { ...p, objectGroup: group }));
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  exceptionDetails(s, p) {
    const { value, group } = s.mirror.handles.get(p.errorObjectId);
    if (s.mirror.kind(value).subtype !== 'error') throw new CommandError('failed', 'errorObjectId is not a JS error object');
    return { exceptionDetails: this.details(value, 'Uncaught', s.mirror.wrap(value, { group })) };
  }

  heap() {
    return this.o.inspection.heap() ?? unable('this browser does not tell how much memory a page uses');
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  resolveArgument(s, p) {
    const call = this.calls.get(p.ref);
    if (!call || !Number.isInteger(p.arg) || p.arg < 0 || p.arg >= call.args.length) {
      throw new CommandError('object-not-found', `the page does not hold this argument any more: it keeps those of the last ${KEPT_CALLS} calls, while somebody looks`);
    }
    return { object: s.mirror.wrap(call.args[p.arg], { group: p.objectGroup, preview: true }) };
  }

  /**
   * @param {any} p
   * @returns {object}
   */
  node(p) {
    const live = typeof p.id === 'number' ? this.o.trees.live(p.id) : undefined;
    if (!live) throw new CommandError('object-not-found', `node ${p.id} is not in the page any more`);
    return live;
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  resolveNode(s, p) {
    return { object: s.mirror.wrap(this.node(p), { group: p.objectGroup }) };
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  nodeOf(s, p) {
    const { value } = s.mirror.handles.get(p.objectId);
    return { id: value !== null && typeof value === 'object' ? this.o.trees.nodeOf(value)?.id ?? 0 : 0 };
  }

  /**
   * @param {Session} s
   * @param {any} p
   */
  setInspected(s, p) {
    const live = p.id === 0 ? undefined : this.node(p);
    if (s.inspected[0] !== live) s.inspected = [live, ...s.inspected].slice(0, 5);
    return {};
  }
}

/**
 * @param {Session} s
 * @param {any} a a CallArgument
 * @returns {unknown}
 */
function argument(s, a) {
  if (typeof a?.objectId === 'string') return s.mirror.handles.get(a.objectId).value;
  switch (a?.unserializableValue) {
    case undefined: return a?.value;
    case 'NaN': return NaN;
    case 'Infinity': return Infinity;
    case '-Infinity': return -Infinity;
    case '-0': return -0;
  }
  if (/^-?\d+n$/.test(a.unserializableValue)) return BigInt(a.unserializableValue.slice(0, -1));
  throw new CommandError('malformed', `${a.unserializableValue} is no value`);
}

/**
 * @param {unknown} v
 * @param {string} name
 * @returns {string}
 */
function text(v, name) {
  if (typeof v !== 'string') throw new CommandError('malformed', `${name} must be a text`);
  return v;
}

/**
 * @param {string} message
 * @returns {never}
 */
function unable(message) {
  throw new CommandError('unsupported', message);
}

/** How much of an answer one message carries, in UTF-16 units: escaped and in UTF-8 it stays below the server's limit. */
const PART = 128 << 10;

/**
 * The messages of an answer: one, or several whose parts the server joins.
 * @param {number} id
 * @param {string} answer JSON
 * @returns {Iterable<string>}
 */
export function* answerParts(id, answer) {
  if (answer.length <= PART) {
    yield `{"type":"answer","id":${id},${answer.slice(1)}`;
    return;
  }
  const count = Math.ceil(answer.length / PART);
  for (let i = 0, at = 0; i < count; i++) {
    let end = i + 1 === count ? answer.length : Math.max(at, (i + 1) * PART);
    // Half of a surrogate pair would not survive.
    const last = answer.charCodeAt(end - 1);
    if (end < answer.length && last >= 0xd800 && last <= 0xdbff) end++;
    yield JSON.stringify({ type: 'part', id, part: i + 1, of: count, text: answer.slice(at, end) });
    at = end;
  }
}
