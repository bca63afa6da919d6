import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { encode, encodeShort, primitiveText } from '../shared/value.js';
import { cut } from '../shared/text.js';

const vectors = JSON.parse(readFileSync(new URL('../../../subjects/testdata/wire/values.json', import.meta.url), 'utf8'));

/** Stacks depend on where the test runs, so vectors leave them out. */
function withoutStacks(v) {
  if (v === null || typeof v !== 'object') return v;
  if (Array.isArray(v)) return v.map(withoutStacks);
  const out = {};
  for (const [k, x] of Object.entries(v)) {
    if (v.__natscope === 'error' && k === 'stack') continue;
    Object.defineProperty(out, k, { value: withoutStacks(x), enumerable: true });
  }
  return out;
}

const plain = v => JSON.parse(JSON.stringify(v));

let ran = 0;
for (const { name, js, encoded, preview } of vectors) {
  if (js === undefined) continue;
  ran++;
  test(`vector: ${name}`, () => {
    const value = (0, eval)(`(${js})`);
    // As texts, since the order of members counts.
    assert.equal(JSON.stringify(withoutStacks(plain(encode(value)))), JSON.stringify(encoded));
    const inner = encodeShort(value);
    if (inner?.__natscope === 'dehydrated') assert.equal(inner.preview, preview);
    else if (Array.from(preview).length <= 30) assert.equal(encodeShort({ value }).preview, `{value: ${preview}}`);
  });
}

test('there are vectors', () => assert.ok(ran > 140, `only ${ran} vectors have a JavaScript form`));

test('an error carries its stack', () => {
  const e = encode(new TypeError('x'));
  assert.match(e.stack, /value\.test\.js/);
});

test('the kinds of values that both languages have are bound to both', () => {
  const both = new Set();
  const kind = v => v === null ? 'null' : Array.isArray(v) ? 'array' : v?.__natscope ?? typeof v;
  const note = v => {
    both.add(kind(v));
    if (v !== null && typeof v === 'object') Object.values(v).forEach(note);
  };
  for (const v of vectors) if (v.js !== undefined && v.go !== undefined) note(v.encoded);
  for (const want of ['null', 'boolean', 'number', 'string', 'bigint', 'date', 'error', 'array', 'object', 'instance', 'map', 'function', 'dehydrated', 'partial']) assert.ok(both.has(want), `no vector has a ${want} in both`);
});

test('a bigint that nobody could read is not written out', () => {
  const huge = 1n << 40000000n;
  for (const n of [huge, -huge]) {
    const want = { __natscope: 'dehydrated', type: 'object', preview: 'BigInt', size: 0, opaque: true };
    assert.deepEqual(encode(n), want);
    assert.deepEqual(encode([n]), [want]);
    assert.equal(encodeShort([n]).preview, 'Array(1) [BigInt]');
    assert.equal(primitiveText(n), 'BigInt');
  }
  assert.equal(encode(1n << 33000n).__natscope, 'bigint');
});

test('accessors are not called, wherever they are', () => {
  let called = 0;
  class C { get own() { called++; return 1; } }
  const o = Object.defineProperty(new C(), 'mine', { get() { called++; return 2; }, enumerable: true });
  const error = Object.defineProperty(new Error('e'), 'message', { get() { called++; return 'm'; } });
  const array = Object.defineProperty([1], '0', { get() { called++; return 3; } });
  for (const v of [o, [o], { o }, error, array, new Map([[o, o]]), new Set([o])]) encode(v);
  assert.equal(called, 0);
});

test('what throws while it is read is said, not thrown', () => {
  const hostile = new Proxy({}, { getPrototypeOf() { throw new RangeError('no prototype'); } });
  assert.deepEqual(encode(hostile), { __natscope: 'threw', message: 'no prototype' });
  assert.deepEqual(encode([hostile])[0], { __natscope: 'threw', message: 'no prototype' });
  const thrower = new Proxy({}, { ownKeys() { throw null; } });
  assert.equal(encode(thrower).__natscope, 'threw');
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  assert.equal(encode(proxy).__natscope, 'threw');
});

test('objects that only look like a built-in are instances', () => {
  const fake = Object.create(Map.prototype);
  assert.equal(encode(fake).__natscope, 'instance');
  assert.equal(encode(Object.create(Date.prototype)).__natscope, 'instance');
});

test('the short form is small', () => {
  assert.equal(JSON.stringify(encodeShort('x'.repeat(1e6))).length < 1100, true);
  assert.equal(JSON.stringify(encodeShort(Array(1e5).fill('y'.repeat(1e4)))).length < 300, true);
});

test('texts of primitives', () => {
  assert.equal(primitiveText('a\nb'), 'a b');
  // Whoever sees a cut text has to see that, and of how much it is the beginning.
  assert.equal(primitiveText('x'.repeat(100)), 'x'.repeat(100));
  assert.equal(primitiveText('x'.repeat(5000)), 'x'.repeat(99) + '… (5000 characters)');
  assert.equal(primitiveText(-0), '-0');
  assert.equal(primitiveText(10n), '10n');
  assert.equal(primitiveText(null), 'null');
  assert.equal(primitiveText({}), undefined);
  assert.equal(primitiveText(() => 1), undefined);
  assert.equal(cut('ab\u{1F600}', 3), 'ab');
});
