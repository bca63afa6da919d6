import assert from 'node:assert/strict';
import test from 'node:test';
import { Commands } from '../shared/commands.js';
import { Faults } from '../shared/faults.js';
import { RuneTree } from '../shared/runetree.js';
import { converted } from '../shared/runevalue.js';
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
    [{ __runespect: 'bigint', value: '-10' }, { __natscope: 'bigint', value: '-10' }],
    [{ __runespect: 'date', iso: '2024-05-01T10:20:30.040Z' }, { __natscope: 'date', iso: '2024-05-01T10:20:30.040Z' }], [{ __runespect: 'date', iso: null }, { __natscope: 'date', iso: null }],
    [{ __runespect: 'regexp', source: 'a', flags: 'g' }, { __natscope: 'regexp', source: 'a', flags: 'g' }],
    [{ __runespect: 'error-object', name: 'TypeError', message: 'm' }, { __natscope: 'error', name: 'TypeError', message: 'm' }],
    [{ __runespect: 'error', message: 'read' }, { __natscope: 'threw', message: 'read' }],
    [{ __runespect: 'map', entries: [['k', { __runespect: 'bigint', value: '1' }]] }, { __natscope: 'map', entries: [['k', { __natscope: 'bigint', value: '1' }]] }],
    [{ __runespect: 'set', values: [1, { __runespect: 'undefined' }] }, { __natscope: 'set', values: [1, { __natscope: 'undefined' }] }],
    [{ __runespect: 'urlsearchparams', entries: [['a', '1'], ['a', '2']] }, { __natscope: 'urlsearchparams', entries: [['a', '1'], ['a', '2']] }],
    [{ __runespect: 'string', head: 'long', length: 20000 }, { __natscope: 'string', head: 'long', length: 20000 }],
    [{ __runespect: 'instance', name: 'Cart', fields: { n: { __runespect: 'number', value: 'Infinity' } } }, { __natscope: 'instance', name: 'Cart', fields: { n: { __natscope: 'number', value: 'Infinity' } } }],
    [{ __runespect: 'function', name: 'add' }, { __natscope: 'function', name: 'add' }],
    [{ __runespect: 'partial', value: [1], size: 500 }, { __natscope: 'partial', value: [1], size: 500 }],
    [{ __runespect: 'partial', value: { __runespect: 'map', entries: [] }, size: 500 }, { __natscope: 'partial', value: { __natscope: 'map', entries: [] }, size: 500 }],
    [{ __runespect: 'dehydrated', type: 'typedarray', preview: 'p', size: 1, opaque: true }, { __natscope: 'dehydrated', type: 'typedarray', preview: 'p', size: 1, opaque: true }],
    [{ __runespect: 'hologram', x: 1 }, { __natscope: 'hologram', x: 1 }],
    ['half \ud800', 'half \ufffd'], ['Symbol(name)', 'Symbol(name)'], [null, null], [true, true], [[1, { a: 2 }], [1, { a: 2 }]],
    [JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":1}')],
  ]) assert.deepEqual(converted(v), want);
});

test('what looks like a marker and is none is not sent as one', () => {
  // A component may hold what natscope itself would read as a marker.
  assert.deepEqual(converted({ __natscope: 'undefined', a: 1 }), { __natscope: 'object', entries: [['__natscope', 'undefined'], ['a', 1]] });
  assert.deepEqual(converted({ __runespect: 'function', name: 'f', __natscope: 'map' }), { __natscope: 'function', name: 'f' });
  for (const v of [
    { __runespect: 'number', value: 'abc' }, { __runespect: 'bigint', value: '1.5' }, { __runespect: 'bigint' }, { __runespect: 'date' }, { __runespect: 'regexp', source: 'x' },
    { __runespect: 'error-object', name: 'E' }, { __runespect: 'error' }, { __runespect: 'map', entries: [[1]] }, { __runespect: 'map' }, { __runespect: 'set', values: 5 }, { __runespect: 'urlsearchparams', entries: 'x' },
    { __runespect: 'string', head: 'x', length: -1 }, { __runespect: 'instance', name: 'C', fields: [] }, { __runespect: 'function', name: 7 },
    { __runespect: 'dehydrated', type: 'array', preview: 'p' }, { __runespect: 'partial', value: 1, size: 5 }, { __runespect: 'partial', value: { __runespect: 'date', iso: null }, size: 5 },
  ]) assert.match(converted(v).message, /the page sent something that is no /, JSON.stringify(v));
  // A window carries more than JSON.
  assert.deepEqual([undefined, 10n, NaN, new Date(0), new Map([[1, 2]])].map(v => converted(v).__natscope), ['undefined', 'bigint', 'number', 'date', 'dehydrated']);
});

test('whatever a node of the agent is, what is sent of it is one', () => {
  const s = setup();
  s.tree.start();
  const wide = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`value ${i}`, 'é'.repeat(7000)]));
  s.agent.flush(() => {
    s.agent.nodes.set(2, { ...s.agent.nodes.get(2), writable: ['label', 'label', 'none'], snippets: 5, kinds: 'x', loc: 7, values: { label: 'a', ['n'.repeat(1000)]: { __runespect: 'set' } } });
    s.agent.nodes.set(3, { ...s.agent.nodes.get(3), writable: 5, snippets: ['s'.repeat(5000)], values: wide, name: 'x'.repeat(199) + '\u{1F600}', loc: 'y'.repeat(999) + '\u{1F600}' });
  });
  const records = s.tree.take();
  for (const { data } of records) assert.doesNotMatch(data, /\\ud83d|\ud83d(?![\udc00-\udfff])/);
  const [a, b] = records.flatMap(r => JSON.parse(r.data).nodes ?? []).map(n => n.node).slice(2);
  assert.deepEqual(a.writable, ['label']);
  assert.deepEqual([a.snippets, a.valueKinds, a.loc], [undefined, undefined, undefined]);
  assert.equal(a.values['n'.repeat(200)].__natscope, 'threw');
  assert.equal(b.writable, undefined);
  assert.ok(Buffer.byteLength(JSON.stringify(b)) < 448 << 10, 'a reader refuses larger nodes');
  assert.equal(Object.keys(b.values).length, 100);
  assert.deepEqual([b.name.length, b.loc.length, b.snippets[0].length], [199, 999, 200]);
});

test('an edit with a marker of the agent is refused, as the agent would without a word', async () => {
  const s = setup();
  s.tree.start();
  const [app] = s.snapshot().root.children;
  assert.equal(await s.ask('tree.edit', { id: app.id, symbol: 'count', value: { a: [{ __runespect: 'dehydrated' }] } }), 'refused');
  assert.equal(s.bus.log.some(m => m.kind === 'edit'), false);
});

test('the bridge before the agent: the tree comes when the page\'s agent connects', async () => {
  const bus = new Bus();
  const transport = bus.connect('natscope');
  const tree = new RuneTree({ send: m => transport.send(m), setTimer: setTimeout, clearTimer: clearTimeout, changed: () => {}, tell: () => {}, limits: () => ({ nodes: 1000 }), revision: 0 });
  transport.onMessage(m => tree.panel.receive(m));
  tree.start();
  assert.deepEqual(tree.take(), []);
  const agent = new Agent(bus, undefined, { app: a => a.put(1, 'App', null, { count: 1 }) });
  assert.equal(agent.mode, 'following');
  assert.equal(JSON.parse(tree.take()[0].data).root.children[0].name, 'App');
  tree.stop();
});

test('a flush lost on the way is repaired in the page\'s tree, and nodes keep their ids', async () => {
  const s = setup();
  s.tree.start();
  const [before] = s.snapshot().root.children;
  s.bus.lose = m => m.kind === 'ops';
  s.agent.flush(() => s.agent.put(2, 'Row', 1, { label: 'lost' }));
  s.bus.lose = () => false;
  s.agent.flush(() => s.agent.put(3, 'Row', 1, { label: 'shows it' }));
  const ops = JSON.parse(s.tree.take()[0].data).ops;
  assert.deepEqual(ops.map(o => [o.op, o.node.id, o.node.attrs[0][1]]), [['update', before.children[0].id, 'lost'], ['update', before.children[1].id, 'shows it']]);
  s.tree.stop();
});

test('an agent that ends and another on the same window: its components are new ones', async () => {
  const s = setup();
  s.tree.start();
  const [before] = s.snapshot().root.children;
  const next = s.agent.reload();
  s.tree.reset();
  const { root } = s.snapshot();
  assert.equal(s.tree.panel.following, next.id);
  assert.equal(root.children[0].name, 'App');
  assert.notEqual(root.children[0].id, before.id);
  assert.equal(await s.ask('tree.log', { id: before.id }), 'object-not-found');
  assert.equal(await s.ask('tree.log', { id: root.children[0].id }), 'done');
  assert.deepEqual(next.did, ['log 1']);
  s.tree.stop();
});

test('a bridge that stops takes its box away and says nothing more', async () => {
  const s = setup();
  s.tree.start();
  s.tree.take();
  s.tree.stop();
  assert.deepEqual(s.agent.did, ['highlight null']);
  const said = s.bus.log.length;
  s.tree.panel.tell({ kind: 'log', id: 1 });
  s.tree.panel.receive({ source: 'runespect', kind: 'hello', from: 'new', n: 1, version: 1 });
  assert.equal(s.bus.log.length, said);
});
