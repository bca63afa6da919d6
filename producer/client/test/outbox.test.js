import assert from 'node:assert/strict';
import test from 'node:test';
import { Outbox } from '../shared/outbox.js';

/** Takes everything that may be sent now, as parsed messages. */
function drain(o, now = 1000) {
  const out = [];
  for (let t = o.next(now); t !== undefined; t = o.next(now)) out.push(JSON.parse(t));
  return out;
}

test('records of one plane go together, numbered', () => {
  const o = new Outbox();
  o.push('console', 1.23456, 'message', '{"a":1}');
  o.push('console', 2, 'message', '{"a":2}');
  o.push('net', 3, 'start', '{}');
  const sent = drain(o);
  assert.deepEqual(sent.map(m => [m.type, m.n, m.plane, m.records.length]), [['records', 1, 'net', 1], ['records', 2, 'console', 2]]);
  assert.deepEqual(sent[1].records[0], { t: 1.235, topic: 'message', data: { a: 1 } });
  assert.equal(o.idle, false);
  o.ack(2);
  assert.equal(o.idle, true);
});

test('the window bounds what is under way, and acknowledgements open it', () => {
  const o = new Outbox();
  for (let i = 0; i < 100; i++) o.pushBody({ type: 'body', request: 'r', dir: 'res', offset: i, data: 'AA==' });
  assert.equal(drain(o).length, 16);
  o.ack(10);
  assert.deepEqual(drain(o).map(m => m.n), [17, 18, 19, 20, 21, 22, 23, 24, 25, 26]);
});

test('what was not acknowledged is sent again, and nothing twice', () => {
  const o = new Outbox();
  for (let i = 0; i < 4; i++) {
    o.push('console', i, 'message', String(i));
    o.next(1000);
  }
  o.ack(1);
  o.resume(2); // the acknowledgement of 2 was lost
  o.push('console', 9, 'message', '9');
  assert.deepEqual(drain(o).map(m => [m.n, m.records[0].data]), [[3, 2], [4, 3], [5, 9]]);
});

test('a server that has more than the page remembers is believed', () => {
  const o = new Outbox();
  o.resume(7);
  o.push('console', 1, 'message', '1');
  assert.equal(drain(o)[0].n, 8);
});

test('a new session begins at 1, with what is left but without the old tree', () => {
  const o = new Outbox();
  o.push('tree', 1, 'ops', '{}');
  o.push('console', 1, 'message', '"a"');
  drain(o);
  o.push('tree', 2, 'ops', '{}');
  o.push('console', 2, 'message', '"b"');
  o.restart();
  const sent = drain(o);
  assert.deepEqual(sent.map(m => [m.n, m.plane, m.records[0].data]), [[1, 'console', 'a'], [2, 'console', 'b']]);
});

test('drops are told with the next message of the plane, even when nothing is left', () => {
  const o = new Outbox();
  for (let i = 0; i < 8192 + 5; i++) o.push('console', i, 'message', String(i));
  const sent = drain(o);
  assert.equal(sent[0].dropped, 5);
  assert.equal(sent[0].records[0].data, 5);
  assert.equal(sent.slice(1).some(m => m.dropped), false);
  assert.equal(o.lost, 5);
});

test('planes take turns', () => {
  const o = new Outbox();
  for (let i = 0; i < 5000; i++) o.push('console', i, 'message', '0');
  for (let i = 0; i < 5; i++) o.pushBody({ type: 'body', request: 'r', dir: 'res', offset: i, data: 'AA==' });
  o.push('net', 1, 'start', '{}');
  o.pushUpdate({ title: 'a' });
  o.pushUpdate({ url: 'b' });
  const kinds = drain(o).slice(0, 5).map(m => m.plane ?? m.type);
  assert.equal(kinds[0], 'update');
  assert.deepEqual(new Set(kinds), new Set(['update', 'net', 'console', 'body']));
});

test('the rate is kept, and comes back with time', () => {
  const o = new Outbox();
  o.setRate(1000);
  o.tokens = 0;
  o.refilled = 1000;
  o.push('console', 1, 'message', '1');
  assert.equal(o.next(1000), undefined);
  assert.notEqual(o.next(1010), undefined);
});

test('a full body queue refuses pieces and takes ends', () => {
  const o = new Outbox();
  const data = 'A'.repeat(1 << 20);
  let kept = 0;
  while (o.pushBody({ type: 'body', request: 'r', dir: 'res', offset: kept, data })) kept++;
  assert.equal(kept > 10 && kept < 20, true);
  assert.equal(o.pushBody({ type: 'body', request: 'r', dir: 'res', offset: 1, end: 'truncated', total: 2 }), true);
});

test('a page that leaves empties its queues whatever the window says', () => {
  const o = new Outbox();
  for (let i = 0; i < 40; i++) o.pushBody({ type: 'body', request: 'r', dir: 'res', offset: i, data: 'AA==' });
  let n = 0;
  while (o.next(1000, true) !== undefined) n++;
  assert.equal(n, 40);
});

test('an outage of three minutes keeps what is newest within its bounds, and tells every record that was dropped', () => {
  const o = new Outbox();
  const records = 180000;
  for (let i = 0; i < records; i++) {
    o.push('console', i, 'message', `{"i":${i},"text":"${'x'.repeat(200)}"}`);
    if (i % 10 === 0) o.pushBody({ type: 'body', request: `r${i}`, dir: 'res', offset: 0, data: 'y'.repeat(40000) });
  }
  const size = [...o.planes.values()].reduce((n, q) => n + (Number.isFinite(q.size) ? q.size : 0), 0) + o.bodies.size;
  assert.ok(size < 24 << 20, `${size} characters wait`);
  assert.ok(o.lost > 0 && o.lost < records);
  // The connection is there again: everything that is left goes, the newest last, and the drops with it.
  let kept = 0, dropped = 0, last = -1, now = records;
  for (let i = 0; i < 20000 && !o.idle; i++) {
    const text = o.next(now += 1000);
    if (text === undefined) continue;
    const m = JSON.parse(text);
    if (m.type === 'records') {
      kept += m.records.length;
      dropped += m.dropped ?? 0;
      last = m.records.at(-1).data.i;
    }
    o.ack(m.n);
  }
  assert.deepEqual([o.idle, kept + dropped, dropped, last], [true, records, o.lost, records - 1]);
});
