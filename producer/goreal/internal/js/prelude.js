// Runs once in a new runtime. It adds what people meet in a console and the
// engine lacks, and puts fences in front of built-in functions that look at no
// interrupt, so that they cannot take all time and memory of the program.
(isGo, checkSource) => {
  'use strict';
  const MAX_TEXT = 1 << 26, MAX_LIST = 2e7, MAX_NEW = 5e6;
  const define = (o, k, v) => Object.defineProperty(o, k, {value: v, writable: true, configurable: true, enumerable: false});
  const apply = Function.prototype.call.bind(Function.prototype.apply);
  const tooLong = what => new RangeError(`Invalid ${what} length (over the limit of this realm)`);
  // named keeps name and length of what a function replaces.
  const replace = (o, k, make) => {
    const old = o[k], f = make(old);
    Object.defineProperty(f, 'name', {value: k, configurable: true});
    Object.defineProperty(f, 'length', {value: old.length, configurable: true});
    define(o, k, f);
  };

  const S = String.prototype;
  replace(S, 'repeat', old => ({f(n) { if (String(this).length * Number(n) > MAX_TEXT) throw tooLong('string'); return apply(old, this, [n]); }}).f);
  for (const k of ['padStart', 'padEnd'])
    replace(S, k, old => ({f(n, c) { if (Number(n) > MAX_TEXT) throw tooLong('string'); return c === undefined ? apply(old, this, [n]) : apply(old, this, [n, c]); }}).f);
  // A replacement that stands for the whole text makes it grow by squares.
  for (const k of ['replace', 'replaceAll'])
    replace(S, k, old => ({f(p, r) { if (typeof r === 'string' && typeof this === 'string' && this.length * r.length > MAX_TEXT) throw tooLong('string'); return apply(old, this, [p, r]); }}).f);

  // Loops in here look at interrupts, those of the engine's own functions do not.
  const collect = list => { const out = []; let n = 0; for (const x of list) { if (++n > MAX_NEW) throw tooLong('array'); out.push(x); } return out; };
  const isLong = a => a != null && (typeof a === 'object' || typeof a === 'function') && Number(a.length) > MAX_NEW;
  replace(Array, 'from', old => ({f(a, ...r) {
    if (isLong(a)) throw tooLong('array');
    if (a != null && typeof a === 'object' && a.length === undefined && typeof a[Symbol.iterator] === 'function') a = collect(a);
    return apply(old, this === undefined ? Array : this, [a, ...r]);
  }}).f);
  const walk = new Set(['constructor', 'push', 'pop', 'at', 'keys', 'values', 'entries']);
  for (const k of Object.getOwnPropertyNames(Array.prototype)) {
    if (typeof Array.prototype[k] !== 'function' || walk.has(k)) continue;
    replace(Array.prototype, k, old => ({f(...a) { if (this != null && this.length > (isGo(this) ? MAX_NEW : MAX_LIST)) throw new RangeError(`a list of ${this.length} elements is over the limit of this realm: take a slice of it`); return apply(old, this, a); }}).f);
  }
  replace(Array.prototype, 'concat', old => ({f(...a) {
    let n = this == null ? 0 : Number(this.length) || 0;
    for (const x of a) n += Array.isArray(x) || isGo(x) ? x.length : 1;
    if (n > MAX_NEW) throw tooLong('array');
    return apply(old, this, a);
  }}).f);
  // A slice of a long list is short: it must work where all others are refused.
  replace(Array.prototype, 'slice', old => ({f(from, to) {
    const n = this == null ? 0 : this.length;
    if (!(n > MAX_NEW)) return apply(old, this, [from, to]);
    const at = (v, d) => { v = v === undefined ? d : Math.trunc(Number(v)) || 0; return v < 0 ? Math.max(n + v, 0) : Math.min(v, n); };
    const a = at(from, 0), b = at(to, n), out = [];
    if (b - a > MAX_NEW) throw tooLong('array');
    for (let i = a; i < b; i++) out.push(this[i]);
    return out;
  }}).f);
  // fence puts a check before a constructor.
  const fence = (name, check) => {
    const C = globalThis[name];
    if (!C) return;
    const P = new Proxy(C, {
      construct(t, a, nt) { check(a); return Reflect.construct(t, a, nt === P ? t : nt); },
      apply(t, self, a) { check(a); return Reflect.apply(t, self, a); },
    });
    define(globalThis, name, P);
    define(C.prototype, 'constructor', P);
  };
  for (const n of ['ArrayBuffer', 'Uint8Array', 'Int8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array'])
    fence(n, a => { if (typeof a[0] === 'number' && a[0] > MAX_TEXT) throw tooLong('typed array'); });

  for (const n of ['Set', 'Map', 'WeakSet', 'WeakMap']) fence(n, a => { if (isLong(a[0])) throw tooLong(n); });
  for (const k of ['all', 'allSettled', 'any', 'race']) replace(Promise, k, old => ({f(a) { if (isLong(a)) throw tooLong('array'); return apply(old, this, [a]); }}).f);

  // With a function for each value, writing JSON looks at interrupts, and at how deep it is.
  replace(JSON, 'stringify', old => ({f(v, r, space) {
    if (v === null || typeof v !== 'object' && typeof v !== 'function') return old(v, r, space);
    const path = [], own = typeof r === 'function', allowed = Array.isArray(r) ? new Set(collect(r).map(String)) : null;
    return old(v, function (k, x) {
      while (path.length && path[path.length - 1] !== this) path.pop();
      if (allowed && k !== '' && path.length > 0 && !Array.isArray(this) && !allowed.has(k)) return undefined;
      if (own) x = apply(r, this, [k, x]);
      if (x !== null && typeof x === 'object') {
        if (path.length > 1000) throw new RangeError('the value is nested too deeply for JSON');
        if (isLong(x)) throw tooLong('array');
        path.push(x);
      }
      return x;
    }, space);
  }}).f);

  // Whatever is parsed goes through the check for sources that are too deep.
  const sources = a => { for (const s of a) checkSource(String(s)); };
  for (const f of [function () {}, async function () {}, function* () {}]) {
    const C = Object.getPrototypeOf(f).constructor;
    const P = new Proxy(C, {
      construct(t, a, nt) { sources(a); return Reflect.construct(t, a, nt === P ? t : nt); },
      apply(t, self, a) { sources(a); return Reflect.apply(t, self, a); },
    });
    if (C === Function) define(globalThis, 'Function', P);
    Object.defineProperty(Object.getPrototypeOf(f), 'constructor', {value: P, writable: true, configurable: true, enumerable: false});
  }
  replace(globalThis, 'eval', old => ({f(s) { if (typeof s === 'string') checkSource(s); return old(s); }}).f);
  const depth = s => { let d = 0; for (let i = 0; i < s.length; i++) { const c = s.charCodeAt(i); if (c === 91 || c === 123) { if (++d > 5000) throw new RangeError('the JSON is nested too deeply'); } else if (c === 93 || c === 125) d--; } };
  replace(JSON, 'parse', old => ({f(s, r) {
    s = String(s);
    if (s.length > MAX_LIST) throw tooLong('JSON');
    if (s.length > 5000) depth(s.length > 1 << 16 ? s.replace(/[^\[\]{}]+/g, '') : s);
    return r === undefined ? old(s) : old(s, r);
  }}).f);
  fence('RegExp', a => { const s = typeof a[0] === 'string' ? a[0] : ''; if (s.length > 1 << 16) throw tooLong('pattern'); checkSource(s); });
  const big = BigInt;
  replace(BigInt, 'asUintN', old => ({f(n, v) { if (Number(n) > 1 << 24) throw tooLong('BigInt'); return old(n, v); }}).f);

  const digits = Number.prototype.toString;
  define(Number.prototype, 'toLocaleString', function toLocaleString() {
    const s = apply(digits, this, []), m = /^(-?)(\d+)(\.\d+)?$/.exec(s);
    return m ? m[1] + m[2].replace(/\B(?=(\d{3})+$)/g, ',') + (m[3] || '') : s;
  });
  const lacks = (o, k, v) => { if (!o[k]) define(o, k, v); };
  lacks(Object, 'groupBy', function groupBy(list, f) { const o = Object.create(null); let i = 0; for (const x of list) { const k = f(x, i++); (o[k] || (o[k] = [])).push(x); } return o; });
  lacks(Map, 'groupBy', function groupBy(list, f) { const m = new Map(); let i = 0; for (const x of list) { const k = f(x, i++); m.has(k) ? m.get(k).push(x) : m.set(k, [x]); } return m; });
  lacks(Promise, 'withResolvers', function withResolvers() { let resolve, reject; const promise = new this((a, b) => { resolve = a; reject = b; }); return {promise, resolve, reject}; });
  lacks(globalThis, 'structuredClone', function structuredClone(v) { return v === undefined ? v : JSON.parse(JSON.stringify(v)); });
  lacks(globalThis, 'WeakRef', class WeakRef { #v; constructor(v) { this.#v = v; } deref() { return this.#v; } });
  lacks(Error, 'captureStackTrace', function captureStackTrace() {});
}
