import assert from 'node:assert/strict';
import test from 'node:test';
import { Context, Service } from '@deepseek-ai/cordis';
import { CordisTree } from '../shared/cordis.js';
import { Faults } from '../shared/faults.js';

const settle = () => new Promise(resolve => setTimeout(resolve, 20));

function setup({ details = false, cordisNodes = 2048, depth = 256 } = {}) {
  const root = new Context();
  const faults = new Faults();
  let changes = 0;
  const tree = new CordisTree(root, { details, limits: () => ({ cordisNodes, depth }), changed: () => { changes++; }, faults, revision: 0 });
  return { root, tree, faults, get changes() { return changes; } };
}

/** Applies records as a strict reader does, and returns the tree. */
class Reader {
  constructor() { this.nodes = new Map(); this.root = undefined; this.revision = 0; }

  apply(records) {
    for (const { topic, data } of records) {
      const d = JSON.parse(data);
      if (topic === 'snapshot') {
        this.nodes.clear();
        this.root = this.enter(d.root);
      } else if (topic === 'ops') {
        assert.equal(d.revision, this.revision + 1);
        for (const op of d.ops) this.op(op);
      } else if (topic === 'begin') {
        this.nodes.clear();
      } else if (topic === 'nodes') {
        for (const { parent, node } of d.nodes) {
          const n = this.enter(node);
          if (parent) this.nodes.get(parent).children.push(n);
          else this.root = n;
        }
      } else {
        assert.equal(d.count, this.nodes.size);
      }
      this.revision = d.revision;
      this.truncated = d.truncated === true;
    }
    for (const n of this.nodes.values()) {
      if (n.kind === 'fiber') assert.deepEqual(n.children.map(c => c.kind), ['context'], 'a fiber has its context');
    }
    return this;
  }

  enter(n) {
    assert.equal(this.nodes.has(n.id), false, `node ${n.id} twice`);
    const made = { ...n, children: [] };
    this.nodes.set(n.id, made);
    made.children = (n.children ?? []).map(c => this.enter(c));
    return made;
  }

  op(op) {
    if (op.op === 'add') {
      const p = this.nodes.get(op.parent);
      const at = op.after ? p.children.findIndex(c => c.id === op.after) + 1 : 0;
      assert.ok(!op.after || at > 0, `no sibling ${op.after}`);
      p.children.splice(at, 0, this.enter(op.node));
    } else if (op.op === 'remove') {
      const p = [...this.nodes.values()].find(n => n.children.some(c => c.id === op.id));
      const [n] = p.children.splice(p.children.findIndex(c => c.id === op.id), 1);
      (function drop(nodes, x) { nodes.delete(x.id); x.children.forEach(c => drop(nodes, c)); })(this.nodes, n);
    } else {
      Object.assign(this.nodes.get(op.node.id), { ...op.node, children: this.nodes.get(op.node.id).children });
    }
  }

  /** The shape of the tree: C for contexts, F with its uid for fibers. */
  shape(n = this.root) {
    const inner = n.children.map(c => this.shape(c)).join(' ');
    return (n.kind === 'fiber' ? `F${n.attrs[0][1]}` : 'C') + (inner ? `(${inner})` : '');
  }
}

test('fibers below the context of their parent, each with its own context; no root fiber', async () => {
  const { root, tree, faults } = setup();
  root.plugin({ name: 'a', apply(ctx) { ctx.plugin({ name: 'b', apply() {} }); } });
  root.plugin({ name: 'c', apply() {} });
  await settle();
  const [record] = tree.take();
  const snapshot = JSON.parse(record.data);
  assert.deepEqual([record.topic, snapshot.profile, snapshot.version, snapshot.revision], ['snapshot', 'cordis', 1, 1]);
  const reader = new Reader().apply([record]);
  assert.equal(reader.shape(), 'C(F1(C(F3(C))) F2(C))');
  for (const n of reader.nodes.values()) {
    assert.deepEqual(Object.keys(n).sort(), n.kind === 'fiber' ? ['attrs', 'children', 'id', 'kind', 'name', 'object'] : ['children', 'id', 'kind', 'name', 'object']);
  }
  assert.equal(faults.count, 0);
});

test('what happens in one task is one change, and only what changed is sent', async () => {
  const s = setup();
  const { root, tree } = s;
  const reader = new Reader().apply(tree.take());
  const before = s.changes;
  const fibers = Array.from({ length: 10 }, (_, i) => root.plugin({ name: `p${i}`, apply() {} }));
  await Promise.resolve();
  assert.equal(s.changes, before + 1);
  await settle();
  const records = tree.take();
  assert.deepEqual(records.map(r => r.topic), ['ops']);
  assert.equal(JSON.parse(records[0].data).ops.length, 10);
  reader.apply(records);
  await fibers[3].dispose();
  await settle();
  const [ops] = tree.take();
  assert.deepEqual(JSON.parse(ops.data).ops.map(o => o.op), ['remove']);
  reader.apply([ops]);
  assert.equal(reader.root.children.length, 9);
  assert.deepEqual(tree.take(), []);
});

test('layers that listen are there, also after extend and on alone', async () => {
  const { root, tree, changes } = setup({ details: true });
  tree.take();
  const layer = root.extend({ extra: 1 });
  const before = changes;
  layer.on('some-event', () => {});
  root.isolate('database').on('some-event', () => {});
  root.intercept('logger', {}).extend({}).on('some-event', () => {});
  root.extend({}); // used by nobody
  await settle();
  assert.ok(tree.pending && before === changes);
  const reader = new Reader();
  tree.reset();
  reader.apply(tree.take());
  assert.equal(reader.shape().replaceAll(/F\d+/g, 'F'), 'C(C C C(C))');
  assert.deepEqual(reader.root.children.map(c => c.attrs), [[['layer', 'extend'], ['of', 'extra']], [['layer', 'isolate'], ['of', 'database']], [['layer', 'intercept'], ['of', 'logger']]]);
});

test('disposed fibers and all below them are left out, also while they unload', async () => {
  const { root, tree } = setup();
  let inner;
  const outer = root.plugin({ name: 'outer', apply(ctx) { inner = ctx.extend({}); inner.on('some-event', () => {}); ctx.plugin({ name: 'child', apply() {} }); } });
  await settle();
  const reader = new Reader().apply(tree.take());
  assert.equal(reader.shape(), 'C(F1(C(F2(C) C)))');
  const disposing = outer.dispose();
  reader.apply(tree.take());
  assert.equal(reader.shape(), 'C');
  await disposing;
});

test('a service sees a shadow of its context; both are the same node', async () => {
  const { root, tree } = setup();
  let seen;
  class Probe extends Service {
    constructor(ctx) { super(ctx, 'probe'); }
    look() { seen = this.ctx; this.ctx.on('some-event', () => {}); return this.ctx; }
  }
  root.plugin(Probe);
  await settle();
  root.plugin({ name: 'user', inject: ['probe'], apply(ctx) { ctx.probe.look(); } });
  await settle();
  const reader = new Reader().apply(tree.take());
  assert.equal(reader.shape(), 'C(F1(C) F2(C))');
  const node = tree.nodeOf(seen);
  assert.equal(node?.name, 'Context');
  assert.equal(Object.getPrototypeOf(seen) === tree.live(node.id) || seen === tree.live(node.id), true);
});

test('live objects are found by their node, and nodes by their object', async () => {
  const { root, tree } = setup();
  let inside;
  const made = root.plugin({ name: 'a', apply(ctx) { inside = ctx; } });
  await settle();
  const reader = new Reader().apply(tree.take());
  const [fiber] = reader.root.children;
  assert.equal(tree.live(fiber.id), inside.fiber);
  assert.equal(tree.live(fiber.children[0].id), inside);
  assert.equal(tree.live(reader.root.id), root.root);
  for (const [object, id] of [[inside.fiber, fiber.id], [made, fiber.id], [inside, fiber.children[0].id], [root, reader.root.id]]) assert.equal(tree.nodeOf(object)?.id, id);
  assert.equal(tree.nodeOf({}), undefined);
  await made.dispose();
  tree.take();
  assert.equal(tree.nodeOf(inside), undefined);
  assert.equal(tree.live(fiber.id), undefined);
});

test('a restarted plugin keeps its nodes, and its children are new', async () => {
  const { root, tree } = setup();
  const fiber = root.plugin({ name: 'a', apply(ctx) { ctx.plugin({ name: 'b', apply() {} }); } });
  await settle();
  const reader = new Reader().apply(tree.take());
  const id = reader.root.children[0].id;
  await fiber.restart();
  await settle();
  reader.apply(tree.take());
  assert.equal(reader.root.children[0].id, id);
  assert.match(reader.shape(), /^C\(F1\(C\(F3\(C\)\)\)\)$/);
});

test('limits cut trailing branches, a fiber only with its context', async () => {
  const { root, tree, faults } = setup({ cordisNodes: 6, depth: 3 });
  root.plugin({ name: 'a', apply(ctx) { ctx.plugin({ name: 'b', apply(c) { c.plugin({ name: 'deep', apply() {} }); } }); } });
  root.plugin({ name: 'c', apply() {} });
  await settle();
  const reader = new Reader().apply(tree.take());
  assert.equal(reader.shape(), 'C(F1(C(F3(C))))');
  assert.equal(reader.truncated, true);
  assert.equal(faults.count, 0);
});

test('details tell plugins, states, errors and services', async () => {
  const { root, tree } = setup({ details: true });
  root.plugin({ name: 'broken', apply() { throw new Error('on purpose'); } });
  root.plugin({ name: 'waits', inject: ['never'], apply() {} });
  root.plugin({ name: 'gives', apply(ctx) { ctx.provide('gift', 1); } });
  root.on('internal/error', () => {});
  await settle();
  const reader = new Reader().apply(tree.take());
  const attrs = reader.root.children.map(c => Object.fromEntries(c.attrs));
  assert.deepEqual(attrs, [
    { uid: '1', plugin: 'broken', state: 'failed', error: 'on purpose' },
    { uid: '2', plugin: 'waits', state: 'pending' },
    { uid: '3', plugin: 'gives', state: 'active', services: 'gift' },
  ]);
});

/** What each fiber of a plugin says, by the plugin's name. */
const said = reader => Object.fromEntries([...reader.nodes.values()].filter(n => n.kind === 'fiber').map(n => Object.fromEntries(n.attrs)).map(({ uid, plugin, ...rest }) => [plugin ?? `plugin ${uid}`, rest]));

test('details: plugins of every form have their name', async () => {
  const { root, tree } = setup({ details: true });
  root.plugin({ name: 'object', apply() {} });
  root.plugin(function func() {});
  root.plugin(class Klass { constructor() {} });
  root.plugin(class Served extends Service { constructor(ctx) { super(ctx, 'served'); } });
  root.plugin(() => {});
  await settle();
  assert.deepEqual(said(new Reader().apply(tree.take())), {
    object: { state: 'active' }, func: { state: 'active' }, Klass: { state: 'active' }, Served: { state: 'active', services: 'served' }, 'plugin 5': { state: 'active' },
  });
});

test('details: every state that a living fiber can have, each change as an update', async () => {
  const { root, tree } = setup({ details: true });
  const open = {};
  const gate = name => new Promise(resolve => { open[name] = resolve; });
  let fiber;
  root.plugin({
    name: 'slow',
    inject: ['wanted'],
    async apply(ctx) {
      fiber = ctx.fiber;
      ctx.effect(() => () => gate('unload'));
      await gate('load');
    },
  });
  await settle();
  const reader = new Reader().apply(tree.take());
  const state = async want => {
    for (let i = 0; i < 500; i++) {
      await settle();
      const records = tree.take();
      assert.ok(records.every(r => r.topic === 'ops'), 'only what changed is sent');
      reader.apply(records);
      if (said(reader).slow.state === want) return;
    }
    assert.fail(`${said(reader).slow.state} instead of ${want}`);
  };
  assert.equal(said(reader).slow.state, 'pending');
  root.provide('wanted', 1);
  await state('loading');
  open.load();
  await state('active');
  const restarted = fiber.restart();
  await state('unloading');
  open.unload();
  await state('loading');
  open.load();
  await state('active');
  await restarted;
  const gone = fiber.dispose();
  await settle();
  reader.apply(tree.take());
  assert.equal(said(reader).slow, undefined, 'a fiber that is disposed is left out while it unloads');
  open.unload();
  await gone;
});

test('details: whatever a plugin throws is said, and is gone when it works', async () => {
  const { root, tree } = setup({ details: true });
  root.on('internal/error', () => {});
  class Quiet extends Error { get message() { return 'behind an accessor'; } }
  let broken = true;
  root.plugin({ name: 'text', apply() { throw 'a text'; } });
  root.plugin({ name: 'nothing', apply() { throw null; } });
  root.plugin({ name: 'abort', apply() { throw new DOMException('given up', 'AbortError'); } });
  root.plugin({ name: 'empty', apply() { throw new Error(); } });
  root.plugin({ name: 'quiet', apply() { throw new Quiet(); } });
  root.plugin({ name: 'long', apply() { throw new Error('x'.repeat(1000)); } });
  root.plugin({ name: 'later', async apply() { await settle(); throw new RangeError('after a while'); } });
  const healed = root.plugin({ name: 'healed', apply() { if (broken) throw new Error('not yet'); } });
  await settle();
  await settle();
  await settle();
  const reader = new Reader().apply(tree.take());
  assert.deepEqual(Object.fromEntries(Object.entries(said(reader)).map(([k, v]) => [k, v.error])), {
    text: 'a text', nothing: 'null', abort: 'given up', empty: 'an error without a message', quiet: 'a value without a message was thrown',
    long: 'x'.repeat(299) + '…', later: 'after a while', healed: 'not yet',
  });
  assert.ok(Object.values(said(reader)).every(v => v.state === 'failed'));
  // Cordis writes what comes of this restart to the result of ctx.plugin, and the fiber keeps
  // the error that it had, with which the restart is rejected though the plugin runs.
  broken = false;
  await assert.rejects(healed.restart(), /not yet/);
  assert.deepEqual([healed.state, healed._error], [2, undefined]);
  await settle();
  reader.apply(tree.take());
  assert.deepEqual(said(reader).healed, { state: 'active' });
  broken = true;
  await assert.rejects(healed.restart(), /not yet/);
  await settle();
  reader.apply(tree.take());
  assert.deepEqual(said(reader).healed, { state: 'failed', error: 'not yet' });
});

test('details: services come and go with who provides them, those of the root at the root', async () => {
  const { root, tree } = setup({ details: true });
  root.provide('rooted', 1);
  let provide;
  const fiber = root.plugin({ name: 'gives', apply(ctx) { provide = name => ctx.provide(name, {}); provide('first'); } });
  await settle();
  const reader = new Reader().apply(tree.take());
  assert.deepEqual(reader.root.attrs, [['services', 'rooted']]);
  assert.equal(said(reader).gives.services, 'first');
  const undo = provide('second');
  await settle();
  reader.apply(tree.take());
  assert.equal(said(reader).gives.services, 'first second');
  undo();
  await settle();
  reader.apply(tree.take());
  assert.equal(said(reader).gives.services, 'first');
  await fiber.dispose();
  await settle();
  reader.apply(tree.take());
  assert.equal(said(reader).gives, undefined);
});

test('details: layers within plugins and on layers, several names in one, and none for the contexts of fibers', async () => {
  const { root, tree } = setup({ details: true });
  root.plugin({
    name: 'outer',
    inject: { logger: { name: 'outer' } },
    apply(ctx) {
      const isolated = ctx.isolate('database').isolate('cache');
      isolated.on('some-event', () => {});
      isolated.extend({ a: 1, b: 2 }).on('some-event', () => {});
      ctx.intercept('http', { timeout: 5 }).on('some-event', () => {});
      ctx.extend({ [Symbol('hidden')]: 1 }).on('some-event', () => {});
    },
  });
  root.provide('logger', {});
  await settle();
  const reader = new Reader().apply(tree.take());
  const layers = n => [n.kind === 'fiber' ? 'fiber' : (n.attrs ?? []).map(a => a.join(' ')).join(', '), ...n.children.map(layers)];
  assert.deepEqual(layers(reader.root.children[0]), ['fiber', ['',
    ['layer isolate, of database', ['layer isolate, of cache', ['layer extend, of a b']]],
    ['layer intercept, of http'],
    ['layer extend'],
  ]]);
});

test('a runtime that breaks under it is left alone', async () => {
  const { root, tree, faults } = setup();
  await settle();
  tree.take();
  const hooks = root.events._hooks;
  hooks['odd'] = [null, { ctx: null }, { ctx: new Context() }, { ctx: 5 }];
  const reader = new Reader();
  tree.reset();
  reader.apply(tree.take());
  assert.equal(reader.shape(), 'C');
  tree.stop();
  assert.equal(root.events._hooks['internal/plugin']?.length ?? 0, 0);
  assert.equal(faults.count, 0);
});

test('whatever happens, ops lead to what a snapshot would say', async () => {
  const { root, tree } = setup();
  const reader = new Reader().apply(tree.take());
  let seed = 7;
  const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const contexts = [root];
  const fibers = [];
  for (let i = 0; i < 200; i++) {
    const ctx = contexts[random(contexts.length)];
    try {
      switch (random(4)) {
        case 0: case 1: fibers.push(ctx.plugin({ name: `p${i}`, apply(c) { contexts.push(c); } })); break;
        case 2: { const layer = ctx.extend({}); layer.on('some-event', () => {}); contexts.push(layer); break; }
        case 3: if (fibers.length > 0 && random(2)) await fibers.splice(random(fibers.length), 1)[0].dispose(); break;
      }
    } catch {
      // The context was disposed.
    }
    if (random(3) === 0) {
      await settle();
      reader.apply(tree.take());
    }
  }
  await settle();
  reader.apply(tree.take());
  const shape = reader.shape();
  tree.reset();
  assert.equal(new Reader().apply(tree.take()).shape(), shape);
  assert.ok(shape.length > 100);
});

test('2048 nodes are collected within a frame', async () => {
  const { root, tree } = setup();
  for (let i = 0; i < 1023; i++) root.plugin({ name: `p${i}`, apply() {} });
  await settle();
  const records = tree.take();
  assert.deepEqual([records[0].topic, records.at(-1).topic], ['begin', 'commit']);
  assert.equal(new Reader().apply(records).nodes.size, 2047);
});
