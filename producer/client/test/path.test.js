import assert from 'node:assert/strict';
import test from 'node:test';
import { follow, hasMarker, replaceAt } from '../shared/path.js';
import { CommandError } from '../shared/failure.js';

class Point { constructor(x) { this.x = x; } }

test('paths lead into everything that has entries, and call nothing', () => {
  let called = 0;
  const v = {
    list: [{ a: 1 }], map: new Map([['k', { b: 2 }]]), set: new Set([{ c: 3 }]), params: new URLSearchParams('q=x&q=y'),
    get lazy() { called++; return 1; }, point: new Point(4), none: null, 7: 'seven',
  };
  const at = (...steps) => follow(v, steps)?.value;
  assert.equal(at('list', 0, 'a'), 1);
  assert.equal(at('list', '0', 'a'), 1);
  assert.equal(at('map', 0, 'b'), 2);
  assert.equal(at('set', 0, 'c'), 3);
  assert.equal(at('params', 1), 'y');
  assert.equal(at('point', 'x'), 4);
  assert.equal(at('7'), 'seven');
  assert.equal(at('none'), null);
  assert.equal(typeof at('lazy'), 'function');
  assert.equal(called, 0);
  assert.deepEqual(follow(5, []), { value: 5 });
  for (const steps of [['x'], ['list', 1], ['list', 'x'], ['map', 1], ['map', 'k'], ['set', 9], ['none', 'x'], ['list', 0, 'a', 'b'], [7], ['constructor'], ['__proto__']]) {
    assert.equal(follow(v, steps), undefined, JSON.stringify(steps));
  }
  assert.equal(follow(Object.create(Map.prototype), [0]), undefined);
});

test('a replacement copies along its path and shares the rest', () => {
  const v = { list: [{ a: 1 }, { a: 2 }], map: new Map([['k', { b: 2 }], ['l', 1]]), set: new Set([1, 2]), bare: Object.assign(Object.create(null), { x: 1 }) };
  const before = structuredClone({ ...v, bare: { ...v.bare } });
  const out = replaceAt(v, ['list', 1, 'a'], 9);
  assert.deepEqual(out.list, [{ a: 1 }, { a: 9 }]);
  assert.equal(out.list[0], v.list[0]);
  assert.equal(out.map, v.map);
  assert.deepEqual([...replaceAt(v, ['map', 0, 'b'], 5).map], [['k', { b: 5 }], ['l', 1]]);
  assert.deepEqual([...replaceAt(v, ['set', 1], 7).set], [1, 7]);
  assert.equal(Object.getPrototypeOf(replaceAt(v, ['bare', 'x'], 2).bare), null);
  assert.equal(replaceAt(v, ['fresh'], 3).fresh, 3);
  assert.equal(replaceAt(v, [], 4), 4);
  assert.equal(Object.getPrototypeOf(replaceAt({}, ['__proto__'], { evil: 1 })), Object.prototype);
  assert.deepEqual({ ...v, bare: { ...v.bare } }, before);
});

test('what cannot be copied faithfully is refused', () => {
  const v = { point: new Point(1), list: [1], params: new URLSearchParams('a=b'), get lazy() { return {}; }, none: null };
  for (const [steps, code] of [
    [['point', 'x'], 'refused'], [['lazy'], 'refused'], [['lazy', 'x'], 'object-not-found'], [['params', 0], 'refused'],
    [['list', 1], 'object-not-found'], [['list', 'x'], 'object-not-found'], [['none', 'x'], 'object-not-found'], [['a', 'b'], 'object-not-found'], [['list', 0, 'x'], 'object-not-found'],
  ]) {
    assert.throws(() => replaceAt(v, steps, 1), e => e instanceof CommandError && e.code === code && e.message !== '', JSON.stringify(steps));
  }
});

test('markers are found on every level', () => {
  assert.equal(hasMarker({ a: [1, { b: { __natscope: 'undefined' } }] }), true);
  assert.equal(hasMarker({ a: [1, { b: '__natscope' }], c: null }), false);
});
