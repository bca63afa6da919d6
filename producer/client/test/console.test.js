import assert from 'node:assert/strict';
import test from 'node:test';
import { captureConsole } from '../shared/console.js';
import { Faults } from '../shared/faults.js';
import { Patches } from '../shared/patch.js';

function rig() {
  const calls = [];
  const target = {};
  for (const name of ['log', 'warn', 'error', 'assert', 'count', 'countReset', 'time', 'timeEnd', 'timeLog', 'group', 'groupEnd', 'debug', 'trace', 'table']) {
    target[name] = function (...args) { calls.push([name, this, args]); return 'result'; };
  }
  const seen = [];
  const patches = new Patches();
  const faults = new Faults();
  let now = 0;
  captureConsole({ console: target, patches, faults, record: (topic, data) => seen.push(JSON.parse(data)), now: () => now += 5 });
  return { target, calls, seen, patches, faults };
}

test('the original runs first, with its own this, and its result is returned', () => {
  const { target, calls, seen } = rig();
  const self = { custom: true };
  assert.equal(target.log.call(self, '%s', 1), 'result');
  assert.deepEqual(calls, [['log', self, ['%s', 1]]]);
  assert.deepEqual(seen[0].args, ['%s', 1]);
  assert.throws(() => new target.log());
});

test('every argument keeps all its entries, whatever its place', () => {
  const { target, seen } = rig();
  const value = { a: 1, b: 2, c: 3 };
  target.log(value, value, [1, 2, 3], value);
  assert.deepEqual(seen[0].args, [value, value, [1, 2, 3], value]);
});

test('the stack begins at the call', () => {
  const { target, seen } = rig();
  function caller() { target.warn('x'); }
  caller();
  assert.equal(seen[0].type, 'warning');
  assert.equal(seen[0].stack[0].function, 'caller');
  assert.match(seen[0].stack[0].url, /console\.test\.js$/);
  assert.ok(seen[0].stack[0].line > 0 && seen[0].stack[0].column > 0);
  assert.ok(!seen[0].stack.some(f => f.url.includes('/shared/')));
});

test('methods that print something of their own', () => {
  const { target, seen } = rig();
  target.assert(true, 'no');
  target.assert(false, 'yes');
  target.count();
  target.count('a');
  target.count();
  target.countReset();
  target.count();
  target.time('t');
  target.timeLog('t', 'extra');
  target.timeEnd('t');
  target.timeEnd('unknown');
  target.time('u');
  target.time('u');
  target.countReset('unknown');
  target.log();
  target.trace();
  target.assert(false);
  target.group('g');
  target.groupEnd();
  assert.deepEqual(seen.map(m => [m.type, ...m.args]), [
    ['assert', 'yes'], ['count', 'default: 1'], ['count', 'a: 1'], ['count', 'default: 2'], ['count', 'default: 1'],
    ['log', 't: 5 ms', 'extra'], ['timeEnd', 't: 10 ms'],
    ['warning', "Timer 'unknown' does not exist"], ['warning', "Timer 'u' already exists"], ['warning', "Count for 'unknown' does not exist"],
    ['trace', 'console.trace'], ['assert', 'console.assert'], ['startGroup', 'g'], ['endGroup', 'console.groupEnd'],
  ]);
});

test('a table is two levels deep, and has the rows that there is room for', () => {
  const { target, seen } = rig();
  target.table([{ a: 1, deep: { b: 2 } }, 5, [6]], ['a']);
  assert.deepEqual(seen[0].args, [[{ a: 1, deep: { __natscope: 'dehydrated', type: 'object', preview: '{b: 2}', size: 1 } }, 5, [6]], ['a']]);
  target.table(new Map([['k', { a: 1 }]]));
  assert.deepEqual(seen[1].args, [{ __natscope: 'map', entries: [['k', { a: 1 }]] }]);
  target.table({ x: { a: 1 }, get y() { throw new Error('called'); } });
  assert.deepEqual(seen[2].args[0].x, { a: 1 });
  target.table(Array.from({ length: 300 }, (_, i) => ({ i })));
  assert.equal(seen[3].args[0].length, 300, 'a table that fits is whole');
  target.table(Array.from({ length: 2000 }, (_, i) => ({ i })));
  assert.deepEqual([seen[4].args[0].size, seen[4].args[0].value.length], [2000, 1000]);
  target.table(Array.from({ length: 500 }, (_, i) => ({ text: 'x'.repeat(i < 100 ? 1 : 5000) })));
  const { size, value } = seen[5].args[0];
  assert.ok(size === 500 && value.length > 50 && value.length < 200, `${value.length} rows of ${size}`);
  assert.ok(JSON.stringify(seen[5]).length < 150 << 10);
  target.table([{ text: 'x'.repeat(1e6) }]);
  assert.ok(JSON.stringify(seen[6]).length < 20 << 10);
});

test('huge arguments make small messages', () => {
  const { target, seen } = rig();
  target.log(Array(100).fill('x'.repeat(10000)), 'y'.repeat(1e6), ...Array(500).fill(1));
  assert.ok(JSON.stringify(seen[0]).length < 64 << 10);
});

test('what is logged while we look is not recorded again', () => {
  const { target, seen, calls, faults } = rig();
  const noisy = new Proxy({}, { ownKeys() { target.log('from a trap'); return []; } });
  target.log(noisy);
  assert.equal(calls.length >= 2, true);
  assert.equal(seen.length, 1);
  assert.equal(faults.count, 0);
});

test('an error of the original reaches the page, an error of ours does not', () => {
  const { target, seen, patches, faults } = rig();
  const broken = { log() { throw new RangeError('the page\'s own'); } };
  captureConsole({ console: broken, patches, faults, record: () => {}, now: () => 0 });
  assert.throws(() => broken.log('x'), RangeError);
  const ours = { log() { return 1; } };
  captureConsole({ console: ours, patches, faults, record: () => { throw new Error('full'); }, now: () => 0 });
  assert.equal(ours.log('x'), 1);
  assert.equal(faults.count, 1);
  assert.equal(seen.length, 0);
  void target;
});

test('restore puts back what was there, and steps aside where others patched', () => {
  const plain = { log() {} };
  const { log } = plain;
  log.mark = 1;
  const patches = new Patches();
  const seen = [];
  captureConsole({ console: plain, patches, faults: new Faults(), record: (_, d) => seen.push(d), now: () => 0 });
  const ours = plain.log;
  assert.deepEqual([ours.name, ours.mark, ours.length], ['log', 1, 0]);
  patches.restore();
  assert.equal(plain.log, log);
  ours('late');
  const other = { log() {} };
  const again = new Patches();
  captureConsole({ console: other, patches: again, faults: new Faults(), record: (_, d) => seen.push(d), now: () => 0 });
  const wrapped = other.log;
  other.log = (...args) => wrapped(...args);
  const theirs = other.log;
  again.restore();
  assert.equal(other.log, theirs);
  other.log('x');
  assert.deepEqual(seen, []);
});
