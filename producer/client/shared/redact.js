/**
 * What must not leave the page, or the process: the rules of the Go package
 * producer/redact, and what applies them. The golden vectors bind the two. What
 * was taken out shows as MARK, and nothing is half redacted: a body that cannot
 * be checked as a whole is withheld.
 */

/** Stands in place of what was taken out. */
export const MARK = '[redacted]';

/**
 * Names of query keys and JSON members are compared without regard to case, "_"
 * and "-": one rule access_token is for accessToken and Access-Token, too.
 * @typedef {object} Rules
 * @property {boolean} [secrets] also takes out what is a secret nearly everywhere; see SECRETS
 * @property {string[]} [headers] names of header lines whose values are taken out; of cookies the names stay, of Authorization the scheme
 * @property {string[]} [query] keys whose values are taken out of addresses and forms
 * @property {string[]} [json] members whose values are taken out of JSON: a name alone is for any depth, names with dots between
 *   are a path from the top, in which "*" is any name; arrays are no level of their own
 * @property {(string | RegExp)[]} [patterns] expressions whose matches are taken out of addresses, header values, bodies, messages and
 *   error texts; one that begins with (?i) has no regard to case
 */

/** Rules for what is a secret nearly everywhere: the same as Secrets in Go. */
export const SECRETS = Object.freeze({
  headers: [
    'Authorization', 'Proxy-Authorization', 'Cookie', 'Set-Cookie', 'X-Api-Key', 'Api-Key', 'X-Auth-Token', 'X-Access-Token',
    'X-Csrf-Token', 'X-Xsrf-Token', 'X-Amz-Security-Token', 'X-Goog-Api-Key', 'X-Vault-Token', 'X-Forwarded-Access-Token', 'Private-Token',
  ],
  query: [
    'access_token', 'refresh_token', 'id_token', 'token', 'api_key', 'key', 'password', 'passwd', 'pwd', 'secret', 'client_secret',
    'code', 'sig', 'signature', 'X-Amz-Signature', 'X-Amz-Credential', 'X-Amz-Security-Token', 'X-Goog-Signature',
  ],
  json: [
    'access_token', 'refresh_token', 'id_token', 'token', 'api_key', 'password', 'passwd', 'pwd', 'passphrase', 'secret', 'client_secret',
    'secret_key', 'secret_access_key', 'private_key', 'authorization', 'session_token', 'card_number', 'cvv', 'cvc', 'pin', 'ssn',
  ],
  patterns: [
    String.raw`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`,
    String.raw`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
    String.raw`\bgh[pousr]_[A-Za-z0-9]{30,}\b`, String.raw`\bgithub_pat_[A-Za-z0-9_]{30,}\b`,
    String.raw`\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}\b`,
    String.raw`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`,
    String.raw`(?i)\bbearer [A-Za-z0-9._~+/=-]{16,}`,
    String.raw`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`,
  ],
});

/** How deep JSON that is checked may be nested. */
const MAX_DEPTH = 512;

const KEYS = new Set(['secrets', 'headers', 'query', 'json', 'patterns']);

/**
 * Makes a redactor of what an option says. Rules that cannot work are refused
 * with a TypeError, rather than found out when a secret has leaked.
 * @param {unknown} option rules, "secrets" for SECRETS alone, or nothing
 * @returns {Redactor | undefined} undefined where nothing is to be taken out
 */
export function redactor(option) {
  if (option === undefined || option === null || option === false || option === 'off') return undefined;
  const given = option === true || option === 'secrets' ? { secrets: true } : option;
  if (typeof given !== 'object') throw new TypeError(`natscope: redact is ${String(option).slice(0, 80)}: write "secrets", or an object with headers, query, json, patterns`);
  for (const key of Object.keys(given)) {
    if (!KEYS.has(key)) throw new TypeError(`natscope: redact has no rules "${key.slice(0, 80)}": they are ${[...KEYS].join(', ')}`);
  }
  const own = /** @type {Rules} */ (given);
  const base = own.secrets ? SECRETS : undefined;
  /** @type {(key: 'headers' | 'query' | 'json' | 'patterns') => any[]} */
  const both = key => {
    const list = own[key] ?? [];
    if (!Array.isArray(list)) throw new TypeError(`natscope: redact.${key} is no list`);
    return [...base?.[key] ?? [], ...list];
  };
  const out = new Redactor(both('headers'), both('query'), both('json'), both('patterns'));
  return out.empty ? undefined : out;
}

/** Applies rules. */
export class Redactor {
  /**
   * @param {string[]} headers
   * @param {string[]} query
   * @param {string[]} json
   * @param {(string | RegExp)[]} patterns
   */
  constructor(headers, query, json, patterns) {
    this.headers = new Set(headers.map(h => String(h).trim().toLowerCase()));
    this.query = new Set(query.map(k => plain(String(k))));
    /** @type {Set<string>} members at any depth */
    this.anywhere = new Set();
    /** @type {string[][]} members with a path from the top */
    this.paths = [];
    for (const path of json) this.addPath(String(path));
    this.patterns = patterns.map(compile);
  }

  /** @param {string} path */
  addPath(path) {
    const names = path.split('.').map(n => n === '*' ? n : plain(n));
    if (path.split('.').includes('')) throw new TypeError(`natscope: the JSON path "${path.slice(0, 80)}" has an empty name: write names with a dot between them, as in card.number`);
    if (names.length > 1) this.paths.push(names);
    else if (names[0] === '*') throw new TypeError('natscope: the JSON path "*" is for every member: use a pattern, or turn the network off');
    else this.anywhere.add(names[0]);
  }

  /** @returns {boolean} whether there are no rules at all */
  get empty() {
    return this.headers.size === 0 && !this.inBodies;
  }

  /** @returns {boolean} whether there are rules that look into bodies, so that a body must be known whole before any of it is told */
  get inBodies() {
    return this.patterns.length + this.anywhere.size + this.paths.length + this.query.size > 0;
  }

  /**
   * Types that hold no text pass as they are, save SVG, which does.
   * @param {string} mediaType
   * @returns {boolean} whether the rules look into such a body
   */
  concerns(mediaType) {
    return this.inBodies && (/svg/i.test(mediaType) || !/^(?:image|audio|video|font)\//i.test(mediaType));
  }

  /**
   * @param {string} s
   * @returns {string} without what matches a pattern
   */
  text(s) {
    for (const p of this.patterns) s = s.replace(p, MARK);
    return s;
  }

  /**
   * @param {string} name
   * @param {string} value
   * @returns {string} the value of a header line as it may be told
   */
  header(name, value) {
    name = name.toLowerCase();
    if (this.headers.has(name)) return hidden(name, value);
    return name === 'location' || name === 'content-location' || name === 'referer' ? this.url(value) : this.text(value);
  }

  /**
   * @param {string} u
   * @returns {string} an address without the values of the named keys, in its query and its fragment; the rest stays as it is written
   */
  url(u) {
    if (this.query.size > 0) {
      const hash = u.indexOf('#');
      const head = hash < 0 ? u : u.slice(0, hash);
      const query = head.indexOf('?');
      const shown = query < 0 ? head : head.slice(0, query + 1) + this.form(head.slice(query + 1));
      u = hash < 0 ? shown : `${shown}#${this.fragment(u.slice(hash + 1))}`;
    }
    return this.text(u);
  }

  /**
   * Some put tokens behind the hash, and some have whole addresses there.
   * @param {string} f
   * @returns {string}
   */
  fragment(f) {
    const query = f.indexOf('?');
    return query < 0 ? this.form(f) : f.slice(0, query + 1) + this.form(f.slice(query + 1));
  }

  /**
   * @param {string} s a query, or a form
   * @returns {string} without the values of the named keys; the rest is as it was written
   */
  form(s) {
    if (this.query.size === 0 || !s.includes('=')) return s;
    return s.split('&').map(part => {
      const at = part.indexOf('=');
      if (at < 0) return part;
      let name = unescaped(part.slice(0, at));
      // Frameworks nest keys as user[password].
      const nested = name.lastIndexOf('[');
      if (nested >= 0 && name.endsWith(']') && !this.query.has(plain(name))) name = name.slice(nested + 1, -1);
      return this.query.has(plain(name)) ? part.slice(0, at + 1) + MARK : part;
    }).join('&');
  }

  /**
   * Checks a whole body. Undefined means that it cannot be checked and nothing of
   * it may be told: JSON that is none, a form with a field that the rules name
   * among files, or a content encoding.
   * @param {string} contentType
   * @param {boolean} encoded whether it has a content encoding
   * @param {Uint8Array} bytes
   * @returns {Uint8Array | undefined} the same bytes where nothing is taken out
   */
  body(contentType, encoded, bytes) {
    const mediaType = contentType.split(';', 1)[0].trim().toLowerCase();
    if (bytes.length === 0 || !this.concerns(mediaType)) return bytes;
    if (encoded) return undefined;
    const { text, utf8 } = decode(bytes);
    const out = this.bodyText(mediaType, text);
    if (out === undefined) return undefined;
    return out === text ? bytes : encode(out, utf8);
  }

  /**
   * @param {string} mediaType
   * @param {string} text
   * @returns {string | undefined}
   */
  bodyText(mediaType, text) {
    if (mediaType === 'application/x-www-form-urlencoded') return this.text(this.form(text));
    if (mediaType.startsWith('multipart/')) return this.namesPart(text) ? undefined : this.text(text);
    if (this.anywhere.size + this.paths.length > 0) {
      const isJSON = mediaType.includes('json');
      const first = /^[ \t\r\n]*([{[]?)/.exec(text)?.[1];
      if (isJSON || first) {
        try {
          text = this.json(text);
        } catch {
          // A text that begins with a bracket need not be JSON.
          if (isJSON || first === '{') return undefined;
        }
      }
    }
    return this.text(text);
  }

  /**
   * @param {string} s a message
   * @param {boolean} [cut] whether it is only the beginning, of which nothing may be told
   * @returns {string}
   */
  message(s, cut) {
    if (!this.inBodies || s === '') return s;
    return cut ? MARK : this.bodyText('', s) ?? MARK;
  }

  /**
   * @param {Uint8Array} bytes a message
   * @param {boolean} cut
   * @returns {Uint8Array}
   */
  binary(bytes, cut) {
    if (!this.inBodies || bytes.length === 0) return bytes;
    return (cut ? undefined : this.body('', false, bytes)) ?? encode(MARK, true);
  }

  /**
   * @param {string} text
   * @returns {boolean} whether a part of a multipart body has a name that the rules take out
   */
  namesPart(text) {
    for (const m of text.matchAll(/[;\s]name\*?="?([^";\r\n]*)/gi)) {
      const name = plain(m[1]);
      if (this.query.has(name) || this.anywhere.has(name)) return true;
    }
    return false;
  }

  /**
   * @param {string} text a sequence of JSON values
   * @returns {string} without the members that the rules name; everything else is as it was written
   */
  json(text) {
    const walk = new JSONWalk(this, text);
    while (walk.more()) walk.value(0);
    return walk.result();
  }

  /**
   * @param {string[]} path the names that lead to a member, as they are compared
   * @returns {boolean} whether the rules take it out
   */
  names(path) {
    return this.anywhere.has(path[path.length - 1])
      || this.paths.some(p => p.length === path.length && p.every((n, i) => n === '*' || n === path[i]));
  }
}

/** Goes through JSON with the names that lead to where it is. It throws at what is no JSON. */
class JSONWalk {
  /**
   * @param {Redactor} rules
   * @param {string} text
   */
  constructor(rules, text) {
    this.rules = rules;
    this.text = text;
    this.at = 0;
    /** @type {string[]} */
    this.path = [];
    /** Whether it is within a member that is taken out as a whole. */
    this.inside = false;
    this.out = '';
    /** How much of the text out stands for. */
    this.done = 0;
  }

  /** @returns {string} */
  result() {
    return this.done === 0 ? this.text : this.out + this.text.slice(this.done);
  }

  /** @returns {boolean} whether anything but blanks comes */
  more() {
    for (let c = this.text.charCodeAt(this.at); c === 32 || c === 10 || c === 13 || c === 9; c = this.text.charCodeAt(++this.at));
    return this.at < this.text.length;
  }

  /** @returns {never} */
  fail() {
    throw new SyntaxError('no JSON');
  }

  /** @param {string} c takes this character, or fails */
  take(c) {
    if (!this.more() || this.text[this.at] !== c) this.fail();
    this.at++;
  }

  /** @param {number} depth */
  value(depth) {
    if (depth > MAX_DEPTH || !this.more()) this.fail();
    switch (this.text[this.at]) {
      case '{': return this.list('}', () => this.member(depth));
      case '[': return this.list(']', () => this.value(depth + 1));
      case '"': return this.string();
    }
    PLAIN.lastIndex = this.at;
    if (!PLAIN.test(this.text)) this.fail();
    this.at = PLAIN.lastIndex;
  }

  /**
   * @param {string} end
   * @param {() => void} entry
   */
  list(end, entry) {
    this.at++;
    if (this.more() && this.text[this.at] === end) {
      this.at++;
      return;
    }
    for (;;) {
      entry();
      if (!this.more()) this.fail();
      const c = this.text[this.at++];
      if (c === end) return;
      if (c !== ',') this.fail();
    }
  }

  /** @param {number} depth */
  member(depth) {
    if (!this.more() || this.text[this.at] !== '"') this.fail();
    const from = this.at;
    this.string();
    const raw = this.text.slice(from, this.at);
    this.take(':');
    if (this.inside) {
      this.value(depth + 1);
      return;
    }
    this.path.push(plain(raw.includes('\\') ? JSON.parse(raw) : raw.slice(1, -1)));
    if (this.rules.names(this.path)) {
      this.more();
      const begin = this.at;
      this.inside = true;
      this.value(depth + 1);
      this.inside = false;
      this.out += `${this.text.slice(this.done, begin)}"${MARK}"`;
      this.done = this.at;
    } else {
      this.value(depth + 1);
    }
    this.path.pop();
  }

  string() {
    for (this.at++;;) {
      const c = this.text.charCodeAt(this.at++);
      if (c === 34) return;
      if (!(c >= 32)) this.fail();
      if (c === 92) {
        ESCAPE.lastIndex = this.at;
        if (!ESCAPE.test(this.text)) this.fail();
        this.at = ESCAPE.lastIndex;
      }
    }
  }
}

const PLAIN = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/y;
const ESCAPE = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y;

/**
 * @param {string | RegExp} p
 * @returns {RegExp}
 */
function compile(p) {
  let re;
  try {
    const source = p instanceof RegExp ? p.source : String(p).replace(/^\(\?[ims]+\)/, '');
    const flags = p instanceof RegExp ? p.flags.replace(/[gy]/g, '') : /^\(\?([ims]+)\)/.exec(String(p))?.[1] ?? '';
    re = new RegExp(source, `${flags}g`);
  } catch (e) {
    throw new TypeError(`natscope: the pattern ${String(p).slice(0, 80)} is no expression: ${e instanceof Error ? e.message : e}`);
  }
  if (''.replace(re, 'x') !== '') throw new TypeError(`natscope: the pattern ${String(p).slice(0, 80)} matches the empty text, so it would match everywhere`);
  return re;
}

/**
 * @param {string} name
 * @returns {string} as it is compared
 */
function plain(name) {
  return name.toLowerCase().replace(/[_-]/g, '');
}

/**
 * Keeps of a value what tells no secret: the scheme of credentials, the names of cookies.
 * @param {string} name
 * @param {string} value
 * @returns {string}
 */
function hidden(name, value) {
  const cookie = (/** @type {string} */ c) => c.includes('=') ? c.slice(0, c.indexOf('=') + 1) + MARK : MARK;
  switch (name) {
    case 'authorization': case 'proxy-authorization':
      return value.includes(' ') ? `${value.slice(0, value.indexOf(' '))} ${MARK}` : MARK;
    case 'cookie': return value.split(';').map(cookie).join(';');
    case 'set-cookie': {
      const [first, ...attributes] = value.split(';');
      return [cookie(first), ...attributes].join(';');
    }
  }
  return MARK;
}

/**
 * @param {string} key of a form
 * @returns {string}
 */
function unescaped(key) {
  try {
    return decodeURIComponent(key.replace(/\+/g, ' '));
  } catch {
    return key;
  }
}

/**
 * Reads bytes as text: UTF-8, or what is none a character for each byte.
 * @param {Uint8Array} bytes
 * @returns {{text: string, utf8: boolean}}
 */
function decode(bytes) {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), utf8: true };
  } catch {
    let text = '';
    for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
    return { text, utf8: false };
  }
}

/**
 * @param {string} text
 * @param {boolean} utf8
 * @returns {Uint8Array}
 */
function encode(text, utf8) {
  return utf8 ? new TextEncoder().encode(text) : Uint8Array.from(text, c => c.charCodeAt(0));
}
