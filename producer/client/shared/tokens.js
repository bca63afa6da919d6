/**
 * A tokenizer of JavaScript, as far as somebody needs it who looks for the
 * statements of a script and leaves their meaning to the engine. It never
 * throws: what it does not understand becomes single characters.
 */

/**
 * @typedef {object} Token
 * @property {'name' | 'punctuator' | 'number' | 'string' | 'template' | 'regexp'} kind
 * @property {string} text
 * @property {number} start
 * @property {number} end
 * @property {boolean} newline whether a line ends before it
 * @property {number} match for brackets, the index of the other one; -1 for none
 */

const SPACE = /[\s\ufeff]/;
const NAME_START = /[\p{ID_Start}$_\\#]/u;
const NAME_PART = /[\p{ID_Continue}$\u200c\u200d\\{}]/u;
const PUNCTUATORS = ['>>>=', '...', '===', '!==', '**=', '<<=', '>>=', '>>>', '&&=', '||=', '??=', '=>', '==', '!=', '<=', '>=', '&&', '||', '??', '?.', '++', '--', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '<<', '>>', '**'];
const CLOSERS = /** @type {Record<string, string>} */ ({ ')': '(', ']': '[', '}': '{' });
/** Names after which an expression begins. */
const BEFORE_EXPRESSION = new Set(['return', 'typeof', 'case', 'in', 'of', 'instanceof', 'new', 'delete', 'void', 'throw', 'do', 'else', 'yield', 'await', 'extends', 'default']);
/** Names whose parentheses are followed by a statement. */
const HEADS = new Set(['if', 'while', 'for', 'with']);

/**
 * @param {string} code
 * @returns {Token[]}
 */
export function tokenize(code) {
  return new Scanner(code).scan();
}

class Scanner {
  /** @param {string} code */
  constructor(code) {
    this.code = code;
    this.at = 0;
    this.newline = false;
    /** @type {Token[]} */
    this.tokens = [];
    /** @type {number[]} indices of open brackets */
    this.open = [];
  }

  scan() {
    if (this.code.startsWith('#!')) this.line();
    for (this.skip(); this.at < this.code.length; this.skip()) this.token();
    return this.tokens;
  }

  /** Skips white space and comments. */
  skip() {
    for (;;) {
      const c = this.code[this.at];
      if (c === undefined) return;
      if (SPACE.test(c)) {
        if (c === '\n' || c === '\r' || c === '\u2028' || c === '\u2029') this.newline = true;
        this.at++;
      } else if (this.code.startsWith('//', this.at)) {
        this.line();
      } else if (this.code.startsWith('/*', this.at)) {
        const end = this.code.indexOf('*/', this.at + 2);
        const stop = end < 0 ? this.code.length : end + 2;
        if (/[\n\r\u2028\u2029]/.test(this.code.slice(this.at, stop))) this.newline = true;
        this.at = stop;
      } else {
        return;
      }
    }
  }

  line() {
    while (this.at < this.code.length && !/[\n\r\u2028\u2029]/.test(this.code[this.at])) this.at++;
  }

  token() {
    const { code } = this;
    const start = this.at;
    const c = code[start];
    const pair = String.fromCodePoint(/** @type {number} */ (code.codePointAt(start)));
    if (c === '"' || c === "'") return this.push('string', this.quoted(c));
    if (c === '`') return this.push('template', this.template());
    if (/[0-9]/.test(c) || c === '.' && /[0-9]/.test(code[start + 1] ?? '')) return this.push('number', this.number());
    if (NAME_START.test(pair)) return this.push('name', this.name());
    if (c === '/' && this.expressionBegins()) return this.push('regexp', this.regexp());
    const text = PUNCTUATORS.find(p => code.startsWith(p, start)) ?? pair;
    // "?.5" is a question mark and a number.
    if (text === '?.' && /[0-9]/.test(code[start + 2] ?? '')) return this.push('punctuator', start + 1);
    return this.push('punctuator', start + text.length);
  }

  /**
   * @param {Token['kind']} kind
   * @param {number} end
   */
  push(kind, end) {
    const start = this.at;
    const text = this.code.slice(start, end);
    const index = this.tokens.length;
    /** @type {Token} */
    const t = { kind, text, start, end, newline: this.newline, match: -1 };
    this.tokens.push(t);
    this.at = end;
    this.newline = false;
    if (kind !== 'punctuator') return;
    if (text === '(' || text === '[' || text === '{') this.open.push(index);
    const opener = CLOSERS[text];
    if (opener && this.open.length > 0 && this.tokens[/** @type {number} */ (this.open.at(-1))].text === opener) {
      t.match = /** @type {number} */ (this.open.pop());
      this.tokens[t.match].match = index;
    }
  }

  /** @returns {boolean} whether a slash here begins a regular expression */
  expressionBegins() {
    const prev = this.tokens.at(-1);
    if (!prev) return true;
    switch (prev.kind) {
      case 'name': return BEFORE_EXPRESSION.has(prev.text) && this.tokens.at(-2)?.text !== '.';
      case 'punctuator': break;
      default: return false;
    }
    if (prev.text === ')') {
      const before = prev.match > 0 ? this.tokens[prev.match - 1] : undefined;
      return before?.kind === 'name' && HEADS.has(before.text);
    }
    if (prev.text === '}') return this.endsBlock(prev);
    return prev.text !== ']' && prev.text !== '++' && prev.text !== '--';
  }

  /**
   * @param {Token} close
   * @returns {boolean} whether a brace ends a block, not an object
   */
  endsBlock(close) {
    const before = close.match > 0 ? this.tokens[close.match - 1] : undefined;
    if (close.match === 0 || !before) return true;
    return [';', '{', '}', ')', '=>'].includes(before.text) || before.kind === 'name' && ['else', 'do', 'try', 'finally'].includes(before.text);
  }

  /**
   * @param {string} quote
   * @returns {number} the end of a string; a line break ends it too
   */
  quoted(quote) {
    let i = this.at + 1;
    while (i < this.code.length && this.code[i] !== quote && !/[\n\r]/.test(this.code[i])) i += this.code[i] === '\\' ? 2 : 1;
    return Math.min(i + 1, this.code.length);
  }

  /** @returns {number} the end of a template with all that is in it */
  template() {
    const { code } = this;
    let i = this.at + 1;
    while (i < code.length) {
      if (code[i] === '`') return i + 1;
      if (code[i] === '\\') {
        i += 2;
      } else if (code.startsWith('${', i)) {
        i = this.hole(i + 2);
      } else {
        i++;
      }
    }
    return code.length;
  }

  /**
   * @param {number} from
   * @returns {number} the place behind the brace that ends a template's expression
   */
  hole(from) {
    const inner = new Scanner(this.code);
    inner.at = from;
    let depth = 0;
    for (inner.skip(); inner.at < this.code.length; inner.skip()) {
      if (this.code[inner.at] === '{') depth++;
      if (this.code[inner.at] === '}' && depth-- === 0) return inner.at + 1;
      inner.token();
    }
    return this.code.length;
  }

  /** @returns {number} */
  number() {
    const m = /^(?:0[xXoObB][\da-fA-F_]+n?|(?:\d[\d_]*)?\.?[\d_]*(?:[eE][+-]?[\d_]+)?n?)/.exec(this.code.slice(this.at, this.at + 400));
    return this.at + Math.max(1, m?.[0].length ?? 1);
  }

  /** @returns {number} */
  name() {
    let i = this.at;
    for (let first = true; i < this.code.length; first = false) {
      const c = String.fromCodePoint(/** @type {number} */ (this.code.codePointAt(i)));
      if (c === '\\' && this.code.startsWith('\\u{', i)) {
        const end = this.code.indexOf('}', i);
        i = end < 0 ? this.code.length : end + 1;
        continue;
      }
      if (!(first ? NAME_START : NAME_PART).test(c) || !first && (c === '{' || c === '}')) break;
      i += c.length;
    }
    return Math.max(i, this.at + 1);
  }

  /** @returns {number} */
  regexp() {
    const { code } = this;
    let i = this.at + 1;
    for (let set = false; i < code.length && !/[\n\r]/.test(code[i]); i++) {
      if (code[i] === '\\') i++;
      else if (code[i] === '[') set = true;
      else if (code[i] === ']') set = false;
      else if (code[i] === '/' && !set) {
        for (i++; i < code.length && /[\w$]/.test(code[i]); i++);
        return i;
      }
    }
    // It was none.
    return this.at + 1;
  }
}
