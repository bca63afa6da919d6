import assert from 'node:assert/strict';
import test from 'node:test';
import { Tree } from '../shared/tree.js';

/** A strict reader of tree records, as subjects/tree (Go) is one. */
class Reader {
  constructor() { this.nodes = new Map(); this.revision = 0; this.staged = undefined; }

  apply({ topic, data }) {
    const d = JSON.parse(data);
    switch (topic) {
      case 'snapshot': this.nodes.clear(); this.build(d.root, undefined); this.revision = d.revision; break;
      case 'begin': this.staged = { revision: d.revision, list: [] }; break;
      case 'nodes': assert.equal(d.revision, this.staged.revision); this.staged.list.push(...d.nodes); break;
      case 'commit':
        assert.equal(d.count, this.staged.list.length);
        this.nodes.clear();
        for (const { parent, node } of this.staged.list) this.put(node, parent ? this.get(parent) : undefined);
        this.revision = d.revision;
        break;
      case 'ops':
        assert.equal(d.revision, this.revision + 1);
        this.revision = d.revision;
        for (const op of d.ops) this.op(op);
        break;
    }
  }

  get(id) {
    assert.ok(this.nodes.has(id), `node ${id} is unknown`);
    return this.nodes.get(id);
  }

  put(n, parent, after = parent?.children.at(-1)) {
    assert.ok(!this.nodes.has(n.id), `node ${n.id} is there twice`);
    const e = { ...n, children: [], parent };
    this.nodes.set(n.id, e);
    if (parent) parent.children.splice(after ? parent.children.indexOf(after) + 1 : 0, 0, e);
    return e;
  }

  build(n, parent, after) {
    const e = this.put(n, parent, after);
    for (const c of n.children ?? []) this.build(c, e);
  }

  op(op) {
    switch (op.op) {
      case 'add': {
        const parent = this.get(op.parent);
        const after = op.after ? this.get(op.after) : undefined;
        if (after) assert.equal(after.parent, parent);
        this.build(op.node, parent, after);
        break;
      }
      case 'update': Object.assign(this.get(op.node.id), { attrs: undefined, values: undefined, ...op.node }); break;
      case 'remove': {
        const e = this.get(op.id);
        e.parent.children.splice(e.parent.children.indexOf(e), 1);
        const drop = x => { this.nodes.delete(x.id); x.children.forEach(drop); };
        drop(e);
        break;
      }
    }
  }

  print(e = [...this.nodes.values()].find(n => !n.parent)) {
    return `${e.name}#${e.id}${JSON.stringify(e.values ?? {})}(${e.children.map(c => this.print(c)).join()})`;
  }
}

function print(n) {
  const children = [];
  for (let c = n.first; c; c = c.next) children.push(print(c));
  return `${n.name}#${n.id}${JSON.stringify(n.values)}(${children.join()})`;
}

const limits = () => ({ nodes: 100000, depth: 256 });

test('random changes, taken at random moments, end equal at a strict reader', () => {
  let seed = 1;
  const random = n => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  for (let round = 0; round < 60; round++) {
    const tree = new Tree(limits);
    const reader = new Reader();
    const live = [tree.root];
    for (let step = 0; step < 120; step++) {
      const at = live[random(live.length)];
      switch (random(6)) {
        case 0: case 1: case 2: live.push(tree.add(`C${step}`, { n: step }, at)); break;
        case 3: tree.update(at, { n: random(100), m: 'x' }); break;
        case 4:
          tree.remove(at);
          for (let i = live.length - 1; i > 0; i--) if (!live[i].alive) live.splice(i, 1);
          break;
        case 5:
          if (random(10) === 0) tree.reset();
          for (const r of tree.take()) reader.apply(r);
      }
    }
    for (const r of tree.take()) reader.apply(r);
    if (tree.used) assert.equal(reader.print(), print(tree.root));
  }
});

test('a page without components has no tree', () => {
  const tree = new Tree(limits);
  assert.deepEqual(tree.take(), []);
  tree.add('A', {});
  assert.equal(tree.take()[0].topic, 'snapshot');
  assert.deepEqual(tree.take(), []);
});

test('what came and went between two takes is never sent, and many updates are one', () => {
  const tree = new Tree(limits);
  const a = tree.add('A', { n: 0 });
  tree.take();
  tree.remove(tree.add('B', {}, a));
  assert.deepEqual(tree.take(), []);
  for (let i = 0; i <= 1000; i++) tree.update(a, { n: i });
  const [ops] = tree.take();
  assert.deepEqual(JSON.parse(ops.data).ops, [{ op: 'update', node: { id: 2, name: 'A', attrs: [['n', '1000']], values: { n: 1000 } } }]);
});

test('a large tree goes in parts below the record limit', () => {
  const tree = new Tree(limits);
  const reader = new Reader();
  let parent = tree.root;
  for (let i = 0; i < 5000; i++) {
    const n = tree.add('Component', { text: 'x'.repeat(100), i }, parent);
    if (i % 50 === 0) parent = n;
  }
  const records = tree.take();
  assert.equal(records[0].topic, 'begin');
  assert.equal(records.at(-1).topic, 'commit');
  for (const r of records) {
    assert.ok(r.data.length < 200 << 10, `a record has ${r.data.length} characters`);
    reader.apply(r);
  }
  assert.equal(reader.print(), print(tree.root));
});

// Case C8: the tool must not slow a page with many components, closed or open.
test('in a page of 10 000 components a flush costs what changed, and nothing is encoded while nobody takes', () => {
  const tree = new Tree(() => ({ nodes: 100_000, depth: 256 }));
  let parent = tree.root;
  let encoded = 0;
  const nodes = Array.from({ length: 10_000 }, (_, i) => {
    const n = tree.add('Component', { i, get title() { encoded++; return ''; } }, parent);
    if (i % 100 === 0) parent = n;
    return n;
  });
  tree.take();
  // Closed: a second of sixty flushes in which everything changes, and nobody takes.
  const stringify = JSON.stringify;
  let calls = 0;
  JSON.stringify = (...args) => { calls++; return stringify(...args); };
  try {
    for (let k = 0; k < 60; k++) for (const n of nodes) tree.update(n, { i: k });
    assert.equal(calls, 0);
    tree.take();
    calls = 0;
    // Open: sixty flushes of one change each.
    for (let k = 0; k < 60; k++) {
      tree.update(nodes[k], { i: -k });
      const [record, more] = tree.take();
      assert.equal(more, undefined);
      assert.deepEqual(JSON.parse(record.data).ops.length, 1);
    }
    assert.ok(calls < 60 * 20, `${calls} encodings`);
  } finally {
    JSON.stringify = stringify;
  }
  assert.equal(encoded, 0);
});

test('what a take leaves comes with the next ones, oldest first, and records stay small', () => {
  const tree = new Tree(limits);
  const reader = new Reader();
  const nodes = Array.from({ length: 5000 }, (_, i) => tree.add('Item', { i, text: 'x'.repeat(100) }));
  tree.take().forEach(r => reader.apply(r));
  nodes.forEach(n => tree.update(n, { i: -1 }));
  tree.remove(nodes[4999]);
  const some = tree.take(() => true);
  assert.equal(JSON.parse(some[0].data).ops[0].op, 'remove');
  some.forEach(r => reader.apply(r));
  assert.equal(reader.get(nodes[0].id).values.i, -1);
  assert.equal(reader.get(nodes[4998].id).values.i, 4998);
  tree.update(nodes[0], { i: -2 });
  const rest = tree.take();
  assert.ok(rest.length > 3 && rest.every(r => r.topic === 'ops' && r.data.length < 200 << 10), `${rest.length} records`);
  rest.forEach(r => reader.apply(r));
  assert.equal(reader.print(), print(tree.root));
  assert.equal(tree.pending, false);
});

test('a value that is what it was is not sent again, unless something may be different inside', () => {
  const tree = new Tree(limits);
  const list = [1];
  const n = tree.add('A', { n: 1, list });
  tree.take();
  tree.update(n, { n: 1 });
  assert.equal(tree.pending, false);
  list.push(2);
  tree.update(n, { list });
  assert.deepEqual(JSON.parse(tree.take()[0].data).ops[0].node.values, { n: 1, list: [1, 2] });
  tree.update(n, { more: undefined });
  assert.equal(tree.pending, true);
});

test('huge values do not make huge records', () => {
  const tree = new Tree(limits);
  tree.add('A', { list: Array(100).fill('y'.repeat(10000)), text: 'z'.repeat(1e6) });
  assert.ok(tree.take()[0].data.length < 20 << 10);
});

test('limits cut, say so, and never throw', () => {
  const tree = new Tree(() => ({ nodes: 4, depth: 3 }));
  const a = tree.add('A', {});
  const b = tree.add('B', {}, a);
  assert.equal(tree.add('C', {}, b), undefined);
  assert.ok(tree.add('D', {}));
  assert.equal(tree.add('E', {}), undefined);
  assert.equal(JSON.parse(tree.take()[0].data).truncated, true);
});

test('names and values of any kind', () => {
  const tree = new Tree(limits);
  let called = 0;
  tree.add('', null);
  tree.add('x'.repeat(1000) + '\ud800', { get boom() { called++; return 1; }, '': 1, u: undefined, f() {}, big: 1n });
  const root = JSON.parse(tree.take()[0].data).root;
  assert.equal(called, 0);
  assert.equal(root.children[0].name, 'Anonymous');
  assert.equal(root.children[1].name.length, 200);
  assert.deepEqual(root.children[1].attrs, [['u', 'undefined'], ['big', '1n']]);
  assert.equal(root.children[1].values.boom.name, 'get boom');
});

test('nothing grows below a component that is gone', () => {
  const tree = new Tree(limits);
  const a = tree.add('A', {});
  tree.remove(a);
  assert.equal(tree.add('B', {}, a), undefined);
  tree.update(a, { n: 1 });
  tree.remove(a);
  assert.equal(tree.size, 1);
});

test('a page that nobody watches piles nothing up', () => {
  const tree = new Tree(limits);
  const reader = new Reader();
  const churn = () => {
    for (let i = 0; i < 20000; i++) tree.remove(tree.add('C', { i }));
  };
  churn(); // before the first take
  tree.add('Stays', {});
  tree.take().forEach(r => reader.apply(r));
  churn(); // after it
  const sent = Array.from({ length: 3000 }, () => tree.add('D', {}));
  tree.take().forEach(r => reader.apply(r));
  sent.forEach(n => tree.remove(n));
  assert.ok(tree.added.length + tree.removed.length < 2000, `${tree.added.length} and ${tree.removed.length} changes are kept`);
  tree.take().forEach(r => reader.apply(r));
  assert.equal(reader.print(), print(tree.root));
});
