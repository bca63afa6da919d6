import assert from 'node:assert/strict';
import test from 'node:test';
import { Client } from '../shared/client.js';

/** A page whose clock stands still, but for what encoding takes: a microsecond for each look at the clock. */
async function page() {
  const w = { now: 0, due: [], sent: [] };
  const none = () => () => {};
  const env = {
    scope: {}, runtime: 'test', kind: 'host', place: () => ({ url: 'http://x/', title: '', visible: true }),
    watchPlace: none, watchResources: none, watchNetwork: none, watchLife: none, watchErrors: none, watchAgent: none,
    ground: {}, now: () => w.now += 0.25, setTimer: () => 0, clearTimer() {},
    whenIdle: f => f(),
    nextFlush: (f, rest) => w.due.push({ f, rest }),
    connect(url, protocols, events) {
      w.events = events;
      return { send: t => w.sent.push(JSON.parse(t)), close() {} };
    },
  };
  w.client = new Client(env, { url: 'ws://x/ingest', token: 't', console: false, network: false, components: false });
  w.client.start();
  while (!w.events) await new Promise(r => setTimeout(r, 1));
  w.events.open();
  w.events.message(JSON.stringify({ type: 'welcome', source: 's', last: 0, limits: {} }));
  w.acknowledge = () => w.events.message(JSON.stringify({ type: 'ack', n: Math.max(0, ...w.sent.map(m => m.n ?? 0)) }));
  /** Runs the flush that is due and returns how long it had to rest before. */
  w.flush = async () => {
    await null;
    assert.equal(w.due.length, 1, 'one flush is due');
    const { f, rest } = w.due.pop();
    f();
    await null;
    w.acknowledge();
    await null;
    return rest;
  };
  /** How many nodes the tree's records of the last flushes told of. */
  w.told = () => w.sent.splice(0).flatMap(m => m.plane === 'tree' ? m.records : []).flatMap(r => r.data.ops ?? r.data.nodes ?? [r.data]).length;
  return w;
}

test('a flush ends when its time is spent, the rest is not lost, and it rests in proportion', async () => {
  const w = await page();
  const items = Array.from({ length: 1000 }, (_, i) => w.client.component('Item', { i }));
  await w.flush();
  w.told();
  for (const item of items) item.update({ i: -1 });
  let flushes = 0;
  const rests = [];
  let n = 0;
  while (w.due.length > 0) {
    rests.push(await w.flush());
    const told = w.told();
    assert.ok(told <= 200, `one flush told of ${told}`);
    n += told;
    flushes++;
  }
  assert.equal(n, 1000);
  assert.ok(flushes >= 5, `${flushes} flushes`);
  assert.ok(rests.slice(2).every(r => r > 300), `nobody looks, and the rests are ${rests}`);
  w.client.live = { watched: true, resume() {}, stop() {}, pause() {} };
  for (const item of items) item.update({ i: -2 });
  await w.flush();
  const rest = await w.flush();
  assert.ok(rest > 10 && rest < 100, `somebody looks, and the rest is ${rest}`);
  assert.equal(w.client.faults.count, 0, w.client.faults.last);
});

test('a page that leaves tells everything, however long it takes', async () => {
  const w = await page();
  const items = Array.from({ length: 1000 }, (_, i) => w.client.component('Item', { i }));
  await w.flush();
  w.told();
  for (const item of items) item.update({ i: -1 });
  w.client.stop();
  assert.equal(w.told(), 1000);
});

test('what is revealed is there before it is revealed', async () => {
  const w = await page();
  w.client.component('First', {});
  await w.flush();
  w.sent.length = 0;
  w.client.reveal(w.client.component('New', {}));
  await null;
  assert.deepEqual(w.sent.map(m => m.plane), ['tree', 'event']);
});
