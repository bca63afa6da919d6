import assert from 'node:assert/strict';
import test from 'node:test';
import { Commands } from '../shared/commands.js';
import { CAPABILITIES } from '../shared/protocol.js';
import { ofRealm } from '../shared/live.js';
import { Faults } from '../shared/faults.js';
import { Tree } from '../shared/tree.js';
import { unsupported } from '../shared/unsupported.js';

/** An element as far as components know one. */
const element = (name, parentNode) => ({ name, parentNode, getBoundingClientRect() {} });

function setup(change = {}) {
  const tree = new Tree(() => ({ nodes: 100, depth: 10 }));
  const sent = [];
  const shown = [];
  const timers = new Map();
  let picking;
  const env = {
    scope: { console: { log: (...args) => sent.push({ logged: args }) } },
    setTimer: (f, ms) => { const t = {}; timers.set(t, { f, ms }); return t; },
    clearTimer: t => timers.delete(t),
  };
  const tools = {
    overlay: () => ({ show: (elements, label) => shown.push([label, ...elements.map(e => e.name)]), hide: () => shown.push('none') }),
    pick: events => { picking = events; return () => { picking = undefined; }; },
    openInEditor: async loc => loc === 'a.js:1',
    ...change,
  };
  const commands = new Commands({ env, tools, tree: () => tree, faults: new Faults(), send: text => sent.push(JSON.parse(text)) });
  let id = 0;
  return {
    tree, env, commands, sent, shown, timers,
    get picking() { return picking; },
    /** Sends a command and returns its answer. */
    async ask(method, params) {
      await commands.receive({ type: 'command', id: ++id, method, params });
      const found = sent.filter(m => m.type === 'answer' && m.id === id);
      assert.equal(found.length, 1, `${method} is answered ${found.length} times`);
      return found[0].ok ? found[0].result ?? 'done' : found[0].error.code;
    },
  };
}

test('every capability is a command, and others are unsupported', async () => {
  const s = setup();
  for (const m of CAPABILITIES.filter(c => c.startsWith('tree.') && !ofRealm(c))) assert.notEqual(await s.ask(m, null), 'unsupported', m);
  for (const m of ['tree.dance', 'constructor', '__proto__', '']) assert.equal(await s.ask(m, {}), 'unsupported', m);
});

test('inspect follows a path into what the page has now', async () => {
  const s = setup();
  const big = Array.from({ length: 300 }, (_, i) => i);
  const n = s.tree.add('Cart', { items: [{ name: 'Tea', tags: ['a'] }], big });
  assert.deepEqual(await s.ask('tree.inspect', { id: n.id, path: ['items', 0] }), { value: { name: 'Tea', tags: { __natscope: 'dehydrated', type: 'array', preview: 'Array(1) ["a"]', size: 1 } } });
  assert.equal((await s.ask('tree.inspect', { id: n.id, path: ['big'] })).value.value.length, 100);
  assert.equal((await s.ask('tree.inspect', { id: n.id, path: ['big'], limit: 200 })).value.value.length, 200);
  assert.equal((await s.ask('tree.inspect', { id: n.id, path: ['big'], limit: 1e9 })).value.length, 300);
  for (const p of [{ id: n.id, path: ['none'] }, { id: 99, path: ['items'] }, { id: n.id, path: ['items', 5] }, { id: n.id, path: ['toString'] }]) {
    assert.deepEqual(await s.ask('tree.inspect', p), {}, JSON.stringify(p));
  }
  for (const path of [[], [0], 'items', [{}], [1.5], ['items', -1], undefined]) assert.equal(await s.ask('tree.inspect', { id: n.id, path }), 'malformed', JSON.stringify(path));
});

test('an edit calls the setter of the page, with the whole value', async () => {
  const s = setup();
  const items = [{ n: 1 }, { n: 2 }];
  const got = [];
  const n = s.tree.add('Cart', { items, count: 2, slow: 0, bad: 0, fixed: 1 }, undefined, {
    set: { items: v => got.push(v), count: v => got.push(v), slow: async v => { await null; got.push(v); }, bad: () => { throw new Error('only even numbers'); }, fixed: 7 },
  });
  const edit = (symbol, value, path) => s.ask('tree.edit', { id: n.id, symbol, value, path });
  assert.equal(await edit('count', 5), 'done');
  assert.equal(await edit('items', 9, [1, 'n']), 'done');
  assert.equal(await edit('slow', null), 'done');
  assert.deepEqual(got, [5, [{ n: 1 }, { n: 9 }], null]);
  assert.equal(got[1][0], items[0]);
  assert.deepEqual(items, [{ n: 1 }, { n: 2 }]);
  assert.equal(await edit('bad', 3), 'failed');
  assert.equal(s.sent.at(-1).error.message, 'only even numbers');
  for (const symbol of ['fixed', 'none', 'toString']) assert.equal(await edit(symbol, 1), 'refused', symbol);
  assert.equal(await edit('count', { deep: [{ __natscope: 'undefined' }] }), 'refused');
  assert.equal(await edit('items', 1, [7]), 'object-not-found');
  assert.equal(await edit('count', 1, ['x']), 'object-not-found');
  assert.equal(await edit(5, 1), 'malformed');
  assert.equal(await edit('count', undefined), 'malformed');
  assert.equal(await s.ask('tree.edit', { id: 'x', symbol: 'count', value: 1 }), 'malformed');
  s.tree.remove(n);
  assert.equal(await edit('count', 5), 'object-not-found');
  assert.equal(got.length, 3);
});

test('one setter for all values, and what readers learn of setters', async () => {
  const s = setup();
  const got = [];
  const n = s.tree.add('Cart', { a: 1, b: {} }, undefined, { set: (name, v) => got.push([name, v]), loc: 'cart.js:3' });
  s.tree.add('Fixed', { a: 1 });
  assert.equal(await s.ask('tree.edit', { id: n.id, symbol: 'b', value: [1] }), 'done');
  assert.equal(await s.ask('tree.edit', { id: n.id, symbol: 'c', value: 1 }), 'refused');
  assert.deepEqual(got, [['b', [1]]]);
  const [cart, fixed] = JSON.parse(s.tree.take()[0].data).root.children;
  assert.deepEqual([cart.writable, cart.loc, fixed.writable, fixed.loc], [['a', 'b'], 'cart.js:3', undefined, undefined]);
});

test('a highlight shows elements, and goes by itself', async () => {
  const s = setup();
  const a = element('a'), b = element('b');
  const n = s.tree.add('Cart', {}, undefined, { element: () => [a, null, b, 5] });
  const bare = s.tree.add('Store', {});
  const broken = s.tree.add('Broken', {}, undefined, { element: () => { throw new Error('x'); } });
  assert.equal(await s.ask('tree.highlight', { id: n.id }), 'done');
  assert.deepEqual(s.shown, [['Cart', 'a', 'b']]);
  const [{ f, ms }] = s.timers.values();
  assert.equal(ms, 30000);
  f();
  assert.equal(s.shown.at(-1), 'none');
  assert.equal(await s.ask('tree.highlight', { id: 0 }), 'done');
  assert.equal(s.timers.size, 0);
  for (const x of [bare, broken]) assert.equal(await s.ask('tree.highlight', { id: x.id }), 'object-not-found');
  assert.equal(s.shown.at(-1), 'none');
});

test('a pick tells what the pointer is over and what was clicked', async () => {
  const s = setup();
  const outer = element('outer'), inner = element('inner', outer), leaf = element('leaf', inner), host = element('host', outer);
  const shadow = { host, parentNode: null }, deep = element('deep', shadow), stray = element('stray');
  const app = s.tree.add('App', {}, undefined, { element: outer });
  const card = s.tree.add('Card', {}, app, { element: inner });
  assert.equal(await s.ask('tree.pick', { active: true }), 'done');
  assert.equal(await s.ask('tree.pick', { active: true }), 'done');
  assert.equal(s.timers.size, 1);
  for (const e of [leaf, inner, deep, stray, stray]) s.picking.over(e);
  assert.deepEqual(s.sent.filter(m => m.type === 'event').map(m => [m.event, m.data.id]), [['highlighted', card.id], ['highlighted', app.id], ['highlighted', 0]]);
  s.picking.done(leaf);
  assert.equal(s.picking, undefined);
  assert.deepEqual(s.sent.at(-1), { type: 'event', event: 'picked', data: { id: card.id } });
  assert.equal(s.timers.size, 0);
  await s.ask('tree.pick', { active: true });
  s.picking.done(undefined);
  assert.deepEqual(s.sent.at(-1).data, { id: 0 });
  await s.ask('tree.pick', { active: true });
  await s.ask('tree.pick', { active: false });
  assert.equal(s.picking, undefined);
  assert.equal(s.sent.at(-1).type, 'answer');
});

test('log, store as global and open', async () => {
  const s = setup();
  const items = [1];
  const n = s.tree.add('Cart', { items });
  assert.equal(await s.ask('tree.log', { id: n.id }), 'done');
  assert.deepEqual(s.sent.find(m => m.logged).logged, ['Cart', { items: [1] }]);
  s.env.scope.$r = 'mine';
  assert.deepEqual(await s.ask('tree.storeGlobal', { id: n.id, symbol: 'items' }), { name: '$r' });
  assert.equal(s.env.scope.$r, items);
  assert.deepEqual(await s.ask('tree.storeGlobal', { id: n.id }), { name: '$r' });
  assert.deepEqual(s.env.scope.$r, { items });
  assert.equal(await s.ask('tree.storeGlobal', { id: n.id, symbol: 'none' }), 'object-not-found');
  assert.equal(await s.ask('tree.open', { loc: 'a.js:1' }), 'done');
  assert.equal(await s.ask('tree.open', { loc: 'b.js' }), 'refused');
  assert.equal(await s.ask('tree.open', {}), 'malformed');
  s.commands.stop();
  assert.equal(s.env.scope.$r, 'mine');
});

test('what the environment cannot do is unsupported', async () => {
  const s = setup({ overlay: () => unsupported('highlights', 'here'), pick: () => unsupported('picks', 'here'), openInEditor: () => unsupported('editors', 'here') });
  const n = s.tree.add('Cart', {}, undefined, { element: element('a') });
  assert.equal(await s.ask('tree.highlight', { id: n.id }), 'unsupported');
  assert.equal(await s.ask('tree.pick', { active: true }), 'unsupported');
  assert.equal(await s.ask('tree.open', { loc: 'x' }), 'unsupported');
});

test('commands that take long are bounded, and nothing is answered after the end', async () => {
  const s = setup();
  let finish;
  const n = s.tree.add('Cart', { a: 1 }, undefined, { set: () => new Promise(resolve => { finish = resolve; }) });
  const waiting = Array.from({ length: 16 }, (_, i) => s.commands.receive({ type: 'command', id: 1000 + i, method: 'tree.edit', params: { id: n.id, symbol: 'a', value: 1 } }));
  assert.equal(await s.ask('tree.log', { id: n.id }), 'busy');
  await s.ask('tree.pick', { active: true });
  s.commands.stop();
  assert.equal(s.shown.length, 0);
  const before = s.sent.length;
  finish();
  await waiting.at(-1);
  await s.commands.receive({ type: 'command', id: 5, method: 'tree.log', params: { id: n.id } });
  assert.equal(s.sent.length, before);
});
