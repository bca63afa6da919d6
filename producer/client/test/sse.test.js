import assert from 'node:assert/strict';
import test from 'node:test';
import { EventStreamParser } from '../shared/sse.js';

const STREAM = '\ufeff: comment\r\nid: 1\r\nevent: tick\r\ndata: one\r\ndata: two\r\n\r\ndata:no space\n\ndata\n\nid: ü\rdata: \u{1F600}\r\rretry: 10\n\nevent: lost\n\ndata: unfinished';
const WANT = [
  { event: 'tick', id: '1', data: 'one\ntwo', size: 7 },
  { event: 'message', id: '1', data: 'no space', size: 8 },
  { event: 'message', id: '1', data: '', size: 0 },
  { event: 'message', id: 'ü', data: '\u{1F600}', size: 2 },
];

test('a stream means the same however it is cut', () => {
  const bytes = new TextEncoder().encode(STREAM);
  for (let size = 1; size <= bytes.length; size++) {
    const got = [];
    const p = new EventStreamParser(e => got.push(e));
    for (let i = 0; i < bytes.length; i += size) p.write(bytes.subarray(i, i + size));
    assert.deepEqual(got, WANT, `pieces of ${size} bytes`);
  }
});

test('an endless line is bounded', () => {
  const got = [];
  const p = new EventStreamParser(e => got.push(e));
  p.write(new TextEncoder().encode('data: '));
  for (let i = 0; i < 100; i++) p.write(new Uint8Array(10000).fill(97));
  p.write(new TextEncoder().encode('\n\n'));
  assert.ok(got[0].data.length < 100000);
  assert.equal(got[0].size, 1000000, 'the size is that of all');
});
