import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MARK, SECRETS, redactor } from '../shared/redact.js';

/** What this module and the Go package producer/redact agree upon. */
const vectors = JSON.parse(readFileSync(new URL('../../redact/testdata/vectors.json', import.meta.url), 'utf8'));

test('the usual secrets are the same as in Go', () => assert.deepEqual({ ...SECRETS }, vectors.secrets));

test('header lines, addresses and texts', () => {
  const r = redactor({ secrets: true, ...vectors.headers.rules });
  for (const [name, value, want] of vectors.headers.cases) assert.equal(r.header(name, value), want, `${name}: ${value}`);
  for (const [url, want] of vectors.urls) assert.equal(r.url(url), want);
  for (const [text, want] of vectors.texts) assert.equal(r.text(text), want);
});

const rules = redactor(vectors.bodies.rules);
for (const c of vectors.bodies.cases) {
  test(`a body: ${c.name}`, () => {
    const bytes = s => new Uint8Array(Buffer.from(s, c.base64 ? 'base64' : 'utf8'));
    const body = bytes(c.body);
    const out = rules.body(c.contentType, Boolean(c.encoded), body);
    if (c.withheld) assert.equal(out, undefined);
    else assert.deepEqual(out, bytes(c.want));
    if (c.want === c.body) assert.equal(out, body, 'the bytes themselves where nothing is taken out');
  });
}

test('messages, as texts and as bytes', () => {
  for (const c of vectors.messages) {
    assert.equal(rules.message(c.data, c.cut), c.want);
    assert.equal(Buffer.from(rules.binary(new Uint8Array(Buffer.from(c.data)), Boolean(c.cut))).toString(), c.want);
  }
});

test('rules that cannot work are refused by their name', () => {
  for (const bad of vectors.bad) assert.throws(() => redactor(bad), TypeError);
  assert.throws(() => redactor({ header: ['X'] }), /no rules "header"/);
  assert.throws(() => redactor({ headers: 'X-Tenant' }), /redact.headers is no list/);
  assert.throws(() => redactor('secret'), /write "secrets"/);
});

test('no rules are nothing', () => {
  for (const none of [undefined, null, false, 'off', {}, { headers: [] }]) assert.equal(redactor(none), undefined);
  const only = redactor({ headers: ['X-A'] });
  assert.equal(only.inBodies, false);
  assert.equal(only.message('{'), '{');
  assert.equal(only.url('/?token=1'), '/?token=1');
});

test('expressions of JavaScript, with their flags', () => {
  const r = redactor({ patterns: [/cust-\d+/i, '(?i)order-\\d+', /x$/gm] });
  assert.equal(r.text('CUST-1 Order-2 cust-3\nax\n'), `${MARK} ${MARK} ${MARK}\na${MARK}\n`);
});

test('whatever the JSON, what is left is JSON without the secrets', () => {
  const r = redactor({ json: ['password', 'a.*.b'] });
  let seed = 7;
  const random = n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
  const value = depth => {
    switch (random(depth > 4 ? 4 : 6)) {
      case 0: return random(1e6) / 8;
      case 1: return ['', 'password', '"', '\\', 'ä\u2028😀\n'][random(5)];
      case 2: return null;
      case 3: return random(2) === 0;
      case 4: return Array.from({ length: random(4) }, () => value(depth + 1));
    }
    return Object.fromEntries(Array.from({ length: random(4) }, () => [['a', 'b', 'password', 'Pass_Word', 'x"\\'][random(5)], value(depth + 1)]));
  };
  const without = (v, path) => {
    if (Array.isArray(v)) return v.map(x => without(x, path));
    if (v === null || typeof v !== 'object') return v;
    return Object.fromEntries(Object.entries(v).map(([k, x]) => {
      const at = [...path, k.toLowerCase().replace(/[_-]/g, '')];
      return [k, at.at(-1) === 'password' || at.length === 3 && at[0] === 'a' && at[2] === 'b' ? MARK : without(x, at)];
    }));
  };
  for (let i = 0; i < 2000; i++) {
    const v = value(0);
    const text = JSON.stringify(v, null, random(3));
    assert.deepEqual(JSON.parse(r.json(text)), without(v, []));
    // A text that lost or gained a character is JSON for both, or for neither.
    const at = random(text.length + 1);
    const broken = text.slice(0, at) + ['', ',', '"', '}', '\\', '1'][random(6)] + text.slice(at + random(2));
    let valid = true;
    try { JSON.parse(broken); } catch { valid = false; }
    let checked = true;
    try { r.json(`[${broken}]`); } catch { checked = false; }
    if (valid !== checked) {
      // "1,2" is a list within brackets.
      assert.ok(checked && (() => { try { JSON.parse(`[${broken}]`); return true; } catch { return false; } })(), broken);
    }
  }
});
