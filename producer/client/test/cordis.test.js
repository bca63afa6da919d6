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
