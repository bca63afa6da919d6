import { errorText } from './describe.js';
import { plan } from './repl.js';
import { errorStack, inherited, tryCall } from './read.js';
import { cleanStack, parseStack } from './stack.js';

/**
 * What an environment adds to evaluation.
 * @typedef {object} Ground
 * @property {(names: string[]) => string[]} declare
 *   makes names variables of the global scope as let would, and returns those that it could not
 * @property {() => Record<string, unknown>} commandLine functions that only code from a console sees
 * @property {readonly string[]} quiet global accessors of the platform whose reading has no effect
 */

/** @typedef {{value: unknown} | {thrown: unknown, text: string}} Outcome */

const SyncFunction = Function;
const AsyncFunction = (async () => {}).constructor;

/** What is evaluated behind a script, so that it is parsed and not run. */
const NEVER = 'throw 0;';

/** Runs code for those who debug, as a console would. */
export class Evaluator {
  /**
   * @param {any} scope the global object
   * @param {Ground} ground
   */
  constructor(scope, ground) {
    this.scope = scope;
    this.ground = ground;
    /** @type {Set<string>} names that scripts declared with let, const and class */
    this.lexical = new Set();
    /** @type {boolean | undefined} */
    this.allowed = undefined;
  }

  /** @returns {boolean} whether the page lets anybody evaluate */
  get can() {
    if (this.allowed === undefined) {
      try {
        (0, eval)('0');
        this.allowed = true;
      } catch {
        this.allowed = false;
      }
    }
    return this.allowed;
  }

  /**
   * @param {string} code
   * @param {{repl: boolean, tools?: Record<string, unknown>}} o tools are names that the code finds if the page has none of that name
   * @returns {Outcome | Promise<Outcome>} a promise when the code awaits at its top
   */
  run(code, { repl, tools }) {
    if (!this.can) return forbidden();
    const ready = repl ? this.prepare(code) : { code, async: false };
    const remove = tools ? this.install(tools) : () => {};
    let value;
    try {
      value = (0, eval)(ready.code);
    } catch (thrown) {
      return { thrown, text: 'Uncaught' };
    } finally {
      remove();
    }
    if (!ready.async) return { value };
    return settle(value).then(o => 'thrown' in o ? { thrown: o.thrown, text: 'Uncaught' } : { value: /** @type {any} */ (o.value)?.value });
  }

  /**
   * @param {string} code
   * @returns {{code: string, async: boolean}}
   */
  prepare(code) {
    const async = !parses(SyncFunction, code) && parses(AsyncFunction, code);
    const made = plan(code, async);
    // What the rewriting broke, and what was broken before, is left to the engine.
    if (!made || !parses(SyncFunction, made.code)) return { code, async: false };
    for (const name of made.lexical) this.lexical.add(name);
    const vars = [...made.vars, ...this.ground.declare(made.lexical)];
    return { code: vars.length > 0 ? `var ${vars.join()};${made.code}` : made.code, async };
  }

  /**
   * Says whether a script is one, in the engine's own words.
   * @param {string} code
   * @returns {unknown} the SyntaxError, undefined if there is none
   */
  check(code) {
    if (!this.can) return undefined;
    if (parses(SyncFunction, code) || parses(AsyncFunction, code)) return undefined;
    // A script with an error never runs, and one without never gets past the throw.
    for (const head of [NEVER, `(async()=>{${NEVER}`]) {
      try {
        (0, eval)(head + code);
        return undefined;
      } catch (e) {
        if (!(e instanceof SyntaxError)) return undefined;
        if (!String(inherited(e, 'message')).startsWith('await is only valid')) return e;
      }
    }
    return undefined;
  }

  /**
   * Evaluates what certainly has no effect: literals, and names whose values are
   * just there.
   * @param {string} code
   * @returns {{value: unknown} | undefined} undefined for everything else
   */
  pure(code) {
    const text = code.trim();
    if (text === 'this' || text === '') return text ? { value: this.scope } : undefined;
    if (/^(?:true|false|null|-?\d+(?:\.\d+)?|"[^"\\\n]*")$/.test(text)) return { value: JSON.parse(text) };
    if (!/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(text)) return undefined;
    if (this.lexical.has(text)) {
      try {
        return { value: (0, eval)(text) };
      } catch {
        return undefined;
      }
    }
    const d = Object.getOwnPropertyDescriptor(this.scope, text);
    if (d && 'value' in d) return { value: d.value };
    return d && this.ground.quiet.includes(text) ? { value: this.scope[text] } : undefined;
  }

  /**
   * @param {string} declaration the text of a function
   * @param {unknown} self
   * @param {unknown[]} args
   * @returns {Outcome}
   */
  call(declaration, self, args) {
    if (!this.can) return forbidden();
    try {
      const f = (0, eval)(`(${declaration}\n)`);
      return { value: Reflect.apply(f, self, args) };
    } catch (thrown) {
      return { thrown, text: 'Uncaught' };
    }
  }

  /**
   * @param {Record<string, unknown>} tools
   * @returns {() => void} takes them away again
   */
  install(tools) {
    const added = Object.keys(tools).filter(name => !(name in this.scope));
    for (const name of added) {
      Object.defineProperty(this.scope, name, { ...Object.getOwnPropertyDescriptor(tools, name), configurable: true, enumerable: false });
    }
    return () => {
      for (const name of added) delete this.scope[name];
    };
  }
}

/**
 * @param {unknown} promise
 * @returns {Promise<Outcome>}
 */
export async function settle(promise) {
  try {
    return { value: await promise };
  } catch (thrown) {
    return { thrown, text: 'Uncaught (in promise)' };
  }
}

/** @returns {Outcome} */
function forbidden() {
  const e = new EvalError("the Content-Security-Policy of this page forbids eval, so no code can be run in it; add 'unsafe-eval' to its script-src while you debug. Everything else works");
  e.stack = `${e.name}: ${e.message}`;
  return { thrown: e, text: 'Uncaught' };
}

/** @returns {Outcome} why code that might do something was not run */
export function sideEffect() {
  const e = new EvalError('Possible side-effect in debug-evaluate');
  e.stack = `${e.name}: ${e.message}`;
  return { thrown: e, text: 'Uncaught' };
}

/**
 * @param {Function} kind
 * @param {string} code
 * @returns {boolean}
 */
function parses(kind, code) {
  try {
    Reflect.construct(kind, [code]);
    return true;
  } catch {
    return false;
  }
}

/**
 * What the inspector's protocol tells of something thrown, without the object itself.
 * @param {unknown} thrown
 * @param {string} text
 * @returns {{text: string, lineNumber: number, columnNumber: number, url?: string, stackTrace?: object}}
 */
export function detailsOf(thrown, text) {
  const stack = thrown !== null && typeof thrown === 'object' && errorStack(/** @type {any} */ (thrown));
  const frames = parseStack(stack ? cleanStack(stack) : '');
  const [top] = frames;
  return {
    text, lineNumber: (top?.line ?? 1) - 1, columnNumber: (top?.column ?? 1) - 1,
    ...(top && top.url !== '<anonymous>' ? { url: top.url } : {}),
    ...(frames.length > 0 ? { stackTrace: { callFrames: frames.map(f => ({ functionName: f.function, scriptId: '', url: f.url === '<anonymous>' ? '' : f.url, lineNumber: f.line - 1, columnNumber: f.column - 1 })) } } : {}),
  };
}

/**
 * @param {unknown} thrown
 * @returns {string} one line that says what was thrown
 */
export function thrownText(thrown) {
  if (thrown !== null && typeof thrown === 'object') return tryCall(function () { return errorText(this).split('\n', 1)[0]; }, thrown) ?? 'an object';
  return String(thrown);
}
