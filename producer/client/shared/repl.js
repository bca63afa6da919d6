import { tokenize } from './tokens.js';

/** @typedef {import('./tokens.js').Token} Token */

/**
 * A script, made ready to be evaluated as a console does: what let, const and
 * class declare stays, and may be declared again; await may stand at the top.
 * @typedef {object} Plan
 * @property {string} code what to evaluate
 * @property {string[]} lexical names that let, const and class declare
 * @property {string[]} vars names that become global variables before the code runs
 */

/** Names after which a line cannot be over. */
const UNFINISHED = new Set(['typeof', 'in', 'of', 'instanceof', 'new', 'delete', 'void', 'await', 'extends', 'else', 'do', 'case', 'var', 'let', 'const', 'function', 'class', 'async']);
const CLOSERS = new Set([')', ']', '}']);

/**
 * Rewrites a script. It gives undefined for what it does not understand; the
 * script is then evaluated as it is.
 * @param {string} code
 * @param {boolean} async whether the script awaits at its top
 * @returns {Plan | undefined}
 */
export function plan(code, async) {
  const r = new Rewriter(code, async);
  try {
    r.statements(0, r.tokens.length, true);
  } catch {
    return undefined;
  }
  return r.finish();
}

class Rewriter {
  /**
   * @param {string} code
   * @param {boolean} async
   */
  constructor(code, async) {
    this.code = code;
    this.async = async;
    this.tokens = tokenize(code);
    /** @type {string[]} */
    this.lexical = [];
    /** @type {string[]} */
    this.vars = [];
    /** @type {{start: number, end: number, text: string}[]} replacements in order of their places */
    this.edits = [];
    /** @type {string[]} functions that the async wrapper would hide */
    this.functions = [];
    /** @type {{start: number, end: number} | undefined} the last statement, if it is an expression */
    this.last = undefined;
  }

  /** @returns {Plan} */
  finish() {
    if (this.async && this.last) {
      this.edit(this.last.start, this.last.start, 'return{value:(');
      this.edit(this.last.end, this.last.end, ')}');
    }
    this.edits.sort((a, b) => a.start - b.start);
    let out = '';
    let at = 0;
    for (const e of this.edits) {
      out += this.code.slice(at, e.start) + e.text;
      at = e.end;
    }
    out += this.code.slice(at);
    if (this.async) out = `(async()=>{${this.functions.join('')}${out}\n})()`;
    return { code: out, lexical: [...new Set(this.lexical)], vars: [...new Set(this.vars)] };
  }

  /**
   * @param {number} start
   * @param {number} end
   * @param {string} text
   */
  edit(start, end, text) {
    this.edits.push({ start, end, text });
  }

  /**
   * @param {number} i
   * @returns {string}
   */
  text(i) {
    const t = this.tokens[i];
    return t && (t.kind === 'name' || t.kind === 'punctuator') ? t.text : '';
  }

  /**
   * @param {number} i the index of an opening bracket
   * @returns {number} the index behind its closing one
   */
  past(i) {
    const { match } = this.tokens[i] ?? { match: -1 };
    if (match <= i) throw new SyntaxError('a bracket is missing');
    return match + 1;
  }

  /**
   * @param {number} i
   * @param {number} end
   * @param {boolean} top whether these are the script's own statements
   */
  statements(i, end, top) {
    while (i < end) {
      this.last = undefined;
      const next = this.statement(i, end, top);
      if (next <= i) throw new SyntaxError('no statement');
      i = next;
    }
  }

  /**
   * @param {number} i
   * @param {number} end
   * @param {boolean} top
   * @returns {number} the index behind the statement
   */
  statement(i, end, top) {
    switch (this.text(i)) {
      case ';': return i + 1;
      case '{': return this.block(i);
      case 'if': {
        const after = this.statement(this.head(i + 1), end, false);
        return this.text(after) === 'else' ? this.statement(after + 1, end, false) : after;
      }
      case 'for': return this.statement(this.head(this.text(i + 1) === 'await' ? i + 2 : i + 1), end, false);
      case 'while': case 'with': return this.statement(this.head(i + 1), end, false);
      case 'do': {
        const after = this.past(this.statement(i + 1, end, false) + 1);
        return this.text(after) === ';' ? after + 1 : after;
      }
      case 'try': return this.attempt(i + 1);
      case 'switch': return this.past(this.past(i + 1));
      case 'var': return this.declaration(i, end, this.async ? 'var' : undefined);
      case 'const': return this.declaration(i, end, top ? 'lexical' : undefined);
      case 'let': {
        const next = this.tokens[i + 1];
        if (next && (next.kind === 'name' && !['in', 'instanceof', 'of'].includes(next.text) || next.text === '[' || next.text === '{')) {
          return this.declaration(i, end, top ? 'lexical' : undefined);
        }
        break;
      }
      case 'class': return this.class(i, top);
      case 'async':
        if (this.text(i + 1) === 'function' && !this.tokens[i + 1].newline) return this.function(i, top);
        break;
      case 'function': return this.function(i, top);
      case 'return': case 'break': case 'continue': case 'throw': case 'debugger': return this.expression(i, end).after;
      case 'import': if (!['(', '.'].includes(this.text(i + 1))) throw new SyntaxError('import'); break;
      case 'export': throw new SyntaxError('export');
    }
    if (this.tokens[i].kind === 'name' && this.text(i + 1) === ':') return this.statement(i + 2, end, false);
    const { stop, after } = this.expression(i, end);
    if (top) this.last = { start: this.tokens[i].start, end: this.tokens[stop - 1].end };
    return after;
  }

  /**
   * @param {number} i
   * @returns {number}
   */
  block(i) {
    const after = this.past(i);
    this.statements(i + 1, after - 1, false);
    this.last = undefined;
    return after;
  }

  /**
   * The parentheses of a for, if or while, in which var may declare.
   * @param {number} i
   * @returns {number}
   */
  head(i) {
    const after = this.past(i);
    if (this.async && this.text(i + 1) === 'var') {
      this.edit(this.tokens[i + 1].start, this.tokens[i + 1].end, '');
      let names = i + 2;
      for (;;) {
        names = this.pattern(names, this.vars);
        if (this.text(names) === '=') names = this.item(names + 1, after - 1);
        if (this.text(names) !== ',') break;
        names++;
      }
    }
    return after;
  }

  /**
   * @param {number} i
   * @returns {number}
   */
  attempt(i) {
    let at = this.block(i);
    if (this.text(at) === 'catch') at = this.block(this.text(at + 1) === '(' ? this.past(at + 1) : at + 1);
    if (this.text(at) === 'finally') at = this.block(at + 1);
    return at;
  }

  /**
   * A var, let or const statement. Where its names outlive it, it becomes an assignment.
   * @param {number} i
   * @param {number} end
   * @param {'lexical' | 'var' | undefined} how
   * @returns {number}
   */
  declaration(i, end, how) {
    const { stop, after } = this.expression(i + 1, end);
    if (!how) return after;
    const names = how === 'var' ? this.vars : this.lexical;
    for (let at = i + 1; at < stop;) {
      const behind = this.pattern(at, names);
      if (this.text(behind) === '=') {
        at = this.item(behind + 1, stop);
      } else {
        // A var without a value keeps the one that it has.
        const place = this.tokens[behind - 1].end;
        this.edit(place, place, how === 'var' ? `=${this.tokens[at].text}` : '=void 0');
        at = behind;
      }
      if (at < stop && this.text(at) !== ',') throw new SyntaxError('a declaration goes on in a way that is not known');
      at++;
    }
    this.edit(this.tokens[i].start, this.tokens[i].end, 'void(');
    const place = this.tokens[stop - 1].end;
    // Without a semicolon a line that begins with a bracket would be a call.
    this.edit(place, place, this.text(stop) === ';' ? ')' : ');');
    return after;
  }

  /**
   * Collects the names of a binding pattern.
   * @param {number} i
   * @param {string[]} names
   * @returns {number} the index behind it
   */
  pattern(i, names) {
    const t = this.tokens[i];
    if (t?.kind === 'name') {
      names.push(t.text);
      return i + 1;
    }
    if (t?.text !== '[' && t?.text !== '{') throw new SyntaxError('no binding');
    const end = this.past(i) - 1;
    for (let at = i + 1; at < end;) {
      if (this.text(at) === ',') {
        at++;
        continue;
      }
      if (this.text(at) === '...') at++;
      if (t.text === '{') {
        // "name", "name: pattern" or "[computed]: pattern"
        const behind = this.text(at) === '[' ? this.past(at) : at + 1;
        at = this.text(behind) === ':' ? this.pattern(behind + 1, names) : this.pattern(at, names);
      } else {
        at = this.pattern(at, names);
      }
      if (this.text(at) === '=') at = this.item(at + 1, end);
    }
    return end + 1;
  }

  /**
   * @param {number} i
   * @param {number} end
   * @returns {number} the index of the next comma of this level, or end
   */
  item(i, end) {
    while (i < end && this.text(i) !== ',') i = this.tokens[i].match > i ? this.tokens[i].match + 1 : i + 1;
    return i;
  }

  /**
   * Finds where an expression statement ends: at a semicolon, or at a line
   * break behind which it cannot go on.
   * @param {number} i
   * @param {number} end
   * @returns {{stop: number, after: number}} the index behind its last token, and behind its semicolon
   */
  expression(i, end) {
    let at = i;
    let header = false;
    while (at < end) {
      const text = this.text(at);
      if (text === ';') return { stop: at, after: at + 1 };
      if (CLOSERS.has(text)) break;
      if (at > i && this.tokens[at].newline && !header && this.canEnd(at - 1) && !this.continues(at)) break;
      if (text === 'function' || text === 'class') header = true;
      if (text === '{') header = false;
      at = '([{'.includes(text) && text !== '' ? this.past(at) : at + 1;
    }
    if (at === i) throw new SyntaxError('an expression is missing');
    return { stop: at, after: at };
  }

  /**
   * @param {number} i
   * @returns {boolean} whether an expression can end with a token
   */
  canEnd(i) {
    const t = this.tokens[i];
    if (t.kind === 'name') return !UNFINISHED.has(t.text) || this.text(i - 1) === '.';
    return t.kind !== 'punctuator' || CLOSERS.has(t.text) || t.text === '++' || t.text === '--';
  }

  /**
   * @param {number} i
   * @returns {boolean} whether an expression goes on with a token on a new line
   */
  continues(i) {
    const t = this.tokens[i];
    if (t.kind === 'name') return t.text === 'in' || t.text === 'instanceof';
    if (t.kind === 'template') return true;
    return t.kind === 'punctuator' && !['{', '++', '--', '!', '~', '}'].includes(t.text);
  }

  /**
   * @param {number} i
   * @param {boolean} top
   * @returns {number}
   */
  class(i, top) {
    let body = i + 1;
    while (body < this.tokens.length && this.text(body) !== '{') body = this.text(body) === '(' || this.text(body) === '[' ? this.past(body) : body + 1;
    const after = this.past(body);
    const name = this.tokens[i + 1];
    if (top && name?.kind === 'name' && name.text !== 'extends') {
      this.lexical.push(name.text);
      this.edit(this.tokens[i].start, this.tokens[i].start, `void(${name.text}=`);
      this.edit(this.tokens[after - 1].end, this.tokens[after - 1].end, ');');
    }
    return after;
  }

  /**
   * @param {number} i the index of "function", or of the "async" before it
   * @param {boolean} top
   * @returns {number}
   */
  function(i, top) {
    let at = i;
    while (this.text(at) !== '(') {
      if (at - i > 4) throw new SyntaxError('no parameters');
      at++;
    }
    const name = this.tokens[at - 1];
    const after = this.past(this.past(at));
    if (this.async && top && name.kind === 'name' && name.text !== 'function') {
      const start = this.tokens[i].start;
      const end = this.tokens[after - 1].end;
      this.vars.push(name.text);
      this.functions.push(`${name.text}=${this.code.slice(start, end)};`);
      // Line breaks stay, so that the lines of what follows do.
      this.edit(start, end, ';' + this.code.slice(start, end).replace(/[^\n]/g, ''));
    }
    return after;
  }
}
