import assert from 'node:assert/strict';
import test from 'node:test';
import { losslessJSON } from '../shared/lossless.js';

test('plain JSON passes unchanged', () => {
  for (const v of [null, true, 0, -1.5, '', 'ü\u{1F600}', [], [1, [null]], {}, { a: { b: [{ c: 'd' }] }, '': 1 }, Object.create(null)]) {
    assert.deepEqual(JSON.parse(losslessJSON(v)), JSON.parse(JSON.stringify(v)));
  }
});

test('what JSON would change is refused, with its place', () => {
  const loop = {};
  loop.self = loop;
  for (const [v, place] of [
    [undefined, 'payload'], [NaN, 'payload'], [-0, 'payload'], [1n, 'payload'], [{ a: undefined }, 'payload.a'], [[1, , 2], 'payload'],
    [{ a: [Infinity] }, 'payload.a[0]'], [new Date(), 'payload'], [{ m: new Map() }, 'payload.m'], [{ [Symbol('s')]: 1 }, 'payload'],
    ['\ud800', 'payload'], [{ get a() { throw new Error('called'); } }, 'payload.a'], [{ toJSON() {} }, 'payload.toJSON'], [() => 1, 'payload'],
    [Object.assign([1], { x: 1 }), 'payload'], [loop, 'payload.self'],
  ]) {
    assert.throws(() => losslessJSON(v), e => e instanceof TypeError && e.message.startsWith(`natscope: ${place}`), String(place));
  }
  assert.throws(() => losslessJSON('x'.repeat(300 << 10)), /characters of JSON/);
});
