import assert from 'node:assert/strict';
import test from 'node:test';
import { Queue } from '../shared/queue.js';

test('the oldest is dropped and counted, by count and by size', () => {
  const q = new Queue(3, 100);
  for (const s of ['a', 'b', 'c', 'd']) q.push(s);
  assert.equal(q.peek(), 'b');
  assert.equal(q.takeDropped(), 1);
  assert.equal(q.takeDropped(), 0);
  q.push('x'.repeat(99));
  assert.equal(q.length, 2);
  assert.equal(q.takeDropped(), 2);
  assert.equal(q.lost, 3);
});

test('one that is larger than the queue is kept alone', () => {
  const q = new Queue(3, 10);
  q.push('small');
  q.push('x'.repeat(50));
  assert.equal(q.length, 1);
  assert.equal(q.takeDropped(), 1);
});

test('a queue keeps order and size through many turns', () => {
  const q = new Queue(1000, 1e6);
  let next = 0, expected = 0;
  for (let round = 0; round < 200; round++) {
    for (let i = 0; i < 7; i++) q.push(String(next++));
    for (let i = 0; i < 6; i++) assert.equal(q.shift(), String(expected++));
  }
  while (q.length) assert.equal(q.shift(), String(expected++));
  assert.equal(expected, next);
  assert.equal(q.size, 0);
  assert.equal(q.shift(), undefined);
});
