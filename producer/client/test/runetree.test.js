import assert from 'node:assert/strict';
import test from 'node:test';
import { Commands } from '../shared/commands.js';
import { Faults } from '../shared/faults.js';
import { RuneTree, converted } from '../shared/runetree.js';
import { Agent, Bus } from './agent.js';

const settle = () => new Promise(resolve => setImmediate(resolve));

/** The bridge with an agent on one window, and the commands that DevTools sends. */
function setup() {
  const bus = new Bus();
  const transport = bus.connect('natscope');
  const told = [];
  const faults = new Faults();
  const tree = new RuneTree({
    send: m => transport.send(m), setTimer: (f, ms) => setTimeout(f, Math.min(ms, 30)), clearTimer: clearTimeout,
    changed: () => {}, tell: (event, id) => told.push([event, id]), limits: () => ({ nodes: 1000 }), revision: 0,
  });
  transport.onMessage(m => tree.panel.receive(m));
  const app = a => {
    a.put(1, 'App', null, { count: 1, list: [{ n: 1 }, { n: 2 }] }, { loc: 'App.svelte:3', kinds: { count: 'state' }, writable: ['count', 'list'], snippets: ['row'] });
    a.put(2, 'Row', 1, { label: 'a' }, { writable: [] });
    a.put(3, 'Row', 1, { label: 'b' }, { writable: [] });
  };
  const agent = new Agent(bus, undefined, { app });
  const sent = [];
  const commands = new Commands({ env: { scope: { console }, setTimer: setTimeout, clearTimer: clearTimeout }, tools: {}, tree: () => tree, faults, send: text => sent.push(JSON.parse(text)) });
  let id = 0;
  return {
    bus, tree, agent, told, commands,
    async ask(method, params) {
      await commands.receive({ type: 'command', id: ++id, method, params });
      const a = sent.find(m => m.id === id);
      return a.ok ? a.result ?? 'done' : a.error.code;
    },
    snapshot: () => JSON.parse(tree.take()[0].data),
  };
}

test('the agent\'s components are the page\'s tree', async () => {
  const s = setup();
  s.tree.start();
  const { root, profile } = s.snapshot();
  assert.equal(profile, 'component');
  const [app] = root.children;
  assert.deepEqual([app.name, app.loc, app.writable, app.valueKinds, app.snippets, app.attrs], ['App', 'App.svelte:3', ['count', 'list'], { count: 'state' }, ['row'], [['count', '1']]]);
  assert.equal(app.values.list[0].__natscope, 'dehydrated');
  assert.deepEqual(app.children.map(c => c.attrs[0][1]), ['a', 'b']);
  s.agent.flush(() => {
    s.agent.put(2, 'Row', 1, { label: 'changed' });
    s.agent.remove(3);
    s.agent.put(4, 'Row', 1, { label: 'new' });
  });
  const [record] = s.tree.take();
  assert.equal(record.topic, 'ops');
  assert.deepEqual(JSON.parse(record.data).ops.map(o => [o.op, o.node?.attrs?.[0][1]]), [['remove', undefined], ['update', 'changed'], ['add', 'new']]);
  assert.deepEqual(s.tree.take(), []);
});

test('inspect, edit, highlight, pick, log, store and open go to the agent', async () => {
  const s = setup();
  s.tree.start();
  const [app] = s.snapshot().root.children;
  assert.deepEqual(await s.ask('tree.inspect', { id: app.id, path: ['list', 1] }), { value: { n: 2 } });
  assert.deepEqual(await s.ask('tree.inspect', { id: app.id, path: ['none'] }), {});
  assert.equal(await s.ask('tree.edit', { id: app.id, symbol: 'list', path: [0, 'n'], value: 9 }), 'done');
  assert.deepEqual(s.agent.live.get(1).list, [{ n: 9 }, { n: 2 }]);
  assert.equal(await s.ask('tree.edit', { id: app.id, symbol: 'count', value: 5 }), 'done');
  assert.deepEqual(JSON.parse(s.tree.take()[0].data).ops[0].node.attrs, [['count', '5']]);
  assert.equal(await s.ask('tree.edit', { id: app.children[0].id, symbol: 'label', value: 'x' }), 'refused');
  assert.equal(await s.ask('tree.edit', { id: app.id, symbol: 'count', value: { __natscope: 'undefined' } }), 'refused');
  assert.equal(await s.ask('tree.highlight', { id: app.children[1].id }), 'done');
  assert.equal(await s.ask('tree.highlight', { id: 0 }), 'done');
  assert.equal(await s.ask('tree.log', { id: app.id }), 'done');
  assert.deepEqual(await s.ask('tree.storeGlobal', { id: app.id, symbol: 'count' }), { name: '$r' });
  assert.deepEqual(s.agent.did, ['highlight 3', 'highlight null', 'log 1', 'storeGlobal 1 count']);
  assert.equal(await s.ask('tree.open', { loc: 'App.svelte:3' }), 'done');
  assert.equal(await s.ask('tree.open', { loc: 'Other.svelte' }), 'refused');
  assert.equal(await s.ask('tree.log', { id: 12345 }), 'object-not-found');
  assert.equal(await s.ask('tree.pick', { active: true }), 'done');
  assert.equal(s.agent.picking, true);
  s.agent.send({ kind: 'picked', id: 2 });
  s.agent.send({ kind: 'picked', id: null });
  assert.deepEqual(s.told, [['picked', app.children[0].id], ['picked', 0]]);
});

test('an agent that says nothing is no fault', async () => {
  const s = setup();
  s.tree.start();
  const [app] = s.snapshot().root.children;
  s.bus.lose = () => true;
  assert.deepEqual(await s.ask('tree.inspect', { id: app.id, path: ['list'] }), {});
  assert.equal(await s.ask('tree.open', { loc: 'App.svelte:3' }), 'refused');
});

test('a tree that is none ends', async () => {
  const s = setup();
  s.tree.start();
  s.agent.flush(() => {
    s.agent.nodes.set(2, { ...s.agent.nodes.get(2), children: [1, 2, 99] });
    s.agent.nodes.set(7, { id: 7, name: '', parent: 50, children: [7], values: null });
  });
  const { root } = s.snapshot();
  assert.equal(root.children.length, 2);
  await settle();
});

test('every marker has its counterpart', () => {
  for (const [v, want] of [
    [{ __runespect: 'undefined' }, { __natscope: 'undefined' }], [{ __runespect: 'number', value: 'NaN' }, { __natscope: 'number', value: 'NaN' }],
    [{ __runespect: 'error-object', name: 'TypeError', message: 'm' }, { __natscope: 'error', name: 'TypeError', message: 'm' }],
    [{ __runespect: 'error', message: 'read' }, { __natscope: 'threw', message: 'read' }],
    [{ __runespect: 'map', entries: [['k', { __runespect: 'bigint', value: '1' }]] }, { __natscope: 'map', entries: [['k', { __natscope: 'bigint', value: '1' }]] }],
    [{ __runespect: 'partial', value: [1], size: 500 }, { __natscope: 'partial', value: [1], size: 500 }],
    [{ __runespect: 'dehydrated', type: 'typedarray', preview: 'p', size: 1, opaque: true }, { __natscope: 'dehydrated', type: 'typedarray', preview: 'p', size: 1, opaque: true }],
    ['half \ud800', 'half \ufffd'], [null, null], [[1, { a: 2 }], [1, { a: 2 }]],
  ]) assert.deepEqual(converted(v), want);
});
