import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import test, { after, before } from 'node:test';
import { captureFetch } from '../shared/fetch.js';
import { Faults } from '../shared/faults.js';
import { Patches } from '../shared/patch.js';
import { tellable } from '../shared/checked.js';
import { redactor } from '../shared/redact.js';
import { DEFAULT_LIMITS } from '../shared/protocol.js';

const CHUNK = 64 << 10;
let server, base;
/** How many bytes the endless response wrote. */
let poured = 0;

before(async () => {
  server = createServer((req, res) => {
    switch (new URL(req.url, 'http://x').pathname) {
      case '/text': res.setHeader('content-type', 'text/plain; charset=utf-8'); res.end('hello wörld'); break;
      case '/empty': res.statusCode = 204; res.end(); break;
      case '/echo': req.pipe(res); break;
      case '/broken': res.write('begin'); setImmediate(() => res.destroy()); break;
      case '/endless': {
        const pour = () => {
          while (!res.destroyed && res.write(Buffer.alloc(CHUNK, 'x'))) poured += CHUNK;
        };
        res.on('drain', pour);
        pour();
        break;
      }
      case '/hang': break;
      case '/json': {
        const body = JSON.stringify({ user: 'ada', password: 'hunter2', list: [1] });
        res.writeHead(200, { 'content-type': 'application/json', 'set-cookie': 'sid=hunter2; Path=/', location: '/x?token=hunter2' });
        for (const c of body) res.write(c);
        res.end();
        break;
      }
      case '/huge': res.setHeader('content-type', 'text/plain'); res.end('hunter2'.repeat(300000)); break;
      case '/cut': res.setHeader('content-type', 'application/json'); res.write('{"password":"hunter2",'); setImmediate(() => res.destroy()); break;
      case '/picture': res.setHeader('content-type', 'image/png'); res.end('PNG hunter2'); break;
      case '/events': res.setHeader('content-type', 'text/event-stream'); res.end('data: {"password":"hunter2"}\n\ndata: hunter2 is here\n\ndata: ' + 'x'.repeat(500000) + '\n\ndata: harmless\n\n'); break;
      default: res.statusCode = 404; res.end('none');
    }
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${server.address().port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

/** Captures the fetches of this very process, with a scope of its own for fetch. */
function rig(t, limits = {}, rules = undefined) {
  const records = [], bodies = [];
  const patches = new Patches();
  const faults = new Faults();
  const timers = [];
  let serial = 0;
  const redact = redactor(rules);
  const scope = { fetch: globalThis.fetch.bind(globalThis), Response };
  captureFetch({
    scope, patches, faults, id: () => `r${++serial}`,
    record: (topic, data, at) => records.push({ topic, at, ...JSON.parse(JSON.stringify(tellable(data, redact))) }),
    redact,
    sendBody: m => { bodies.push(m); return true; },
    limits: () => ({ ...DEFAULT_LIMITS, ...limits }),
    now: () => performance.now(), base: () => `${base}/page`,
    setTimer: f => { timers.push(f); return f; },
    clearTimer: f => { const i = timers.indexOf(f); if (i >= 0) timers.splice(i, 1); },
  });
  t.after(() => {
    patches.restore();
    assert.deepEqual([faults.count, faults.last], [0, '']);
  });
  const of = topic => records.filter(r => r.topic === topic);
  return {
    scope, records, bodies, timers, patches, of,
    body: dir => Buffer.concat(bodies.filter(b => b.dir === dir && b.data).map(b => Buffer.from(b.data, 'base64'))).toString(),
    end: dir => bodies.find(b => b.dir === dir && b.end),
    async ended(n = 1) {
      for (let i = 0; i < 500 && of('end').length + of('error').length < n; i++) await new Promise(r => setImmediate(r));
      for (let i = 0; i < 200 && of('end').length + of('error').length < n; i++) await new Promise(r => setTimeout(r, 10));
      assert.equal(of('end').length + of('error').length, n, 'every request ends exactly once');
    },
  };
}

test('a response that is read as a whole', async t => {
  const r = rig(t);
  const response = await r.scope.fetch('/text?a=1'.replace('/', `${base}/`));
  assert.equal(await response.text(), 'hello wörld');
  await r.ended();
  const [start] = r.of('start');
  assert.equal(start.url, `${base}/text?a=1`);
  assert.match(start.stack[0].url, /fetch\.test\.js$/);
  assert.deepEqual([r.of('response')[0].status, r.of('response')[0].mimeType, r.of('response')[0].charset], [200, 'text/plain', 'utf-8']);
  assert.equal(r.body('res'), 'hello wörld');
  assert.deepEqual([r.end('res').end, r.end('res').total], ['complete', 12]);
  assert.equal(r.of('dataReceived').reduce((n, d) => n + d.bytes, 0), 12);
});

test('every reader gives the page what it would get, and we get a copy', async t => {
  for (const name of ['json', 'arrayBuffer', 'blob', 'text']) {
    const r = rig(t);
    const response = await r.scope.fetch(`${base}/echo`, { method: 'POST', body: '{"a":1}' });
    const result = await response[name]();
    if (name === 'json') assert.deepEqual(result, { a: 1 });
    assert.equal(response.bodyUsed, true);
    await assert.rejects(response.text(), TypeError);
    await r.ended();
    assert.equal(r.body('res'), '{"a":1}');
    assert.equal(r.body('req'), '{"a":1}');
    r.patches.restore();
  }
});

test('request bodies of every cheap kind, and those that are left alone', async t => {
  const bytes = new Uint8Array([0, 1, 2, 255]);
  for (const [body, want] of [
    ['text ü', 'text ü'], [new URLSearchParams({ a: 'b c' }), 'a=b+c'], [bytes, Buffer.from(bytes).toString()],
    [bytes.buffer, Buffer.from(bytes).toString()], [new Blob(['blo', 'b']), 'blob'],
  ]) {
    const r = rig(t);
    const sent = await (await r.scope.fetch(`${base}/echo`, { method: 'post', body })).arrayBuffer();
    await r.ended();
    assert.equal(r.of('start')[0].method, 'POST');
    assert.equal(r.body('req'), want);
    assert.equal(r.of('requestBodyEnd')[0].bytes, sent.byteLength);
    assert.equal(r.end('req').end, 'complete');
    r.patches.restore();
  }
  const r = rig(t);
  const stream = new Blob(['streamed']).stream();
  assert.equal(await (await r.scope.fetch(`${base}/echo`, { method: 'POST', body: stream, duplex: 'half' })).text(), 'streamed');
  const request = new Request(`${base}/echo`, { method: 'POST', body: 'in a Request', headers: { 'x-a': 'b' } });
  assert.equal(await (await r.scope.fetch(request)).text(), 'in a Request');
  await r.ended(2);
  assert.equal(r.body('req'), '');
  assert.equal(r.of('start')[1].headers.some(([k, v]) => k === 'x-a' && v === 'b'), true);
  assert.deepEqual(r.of('requestBodyEnd').map(e => e.truncated), [true, true]);
});

test('a stream is pulled by the page alone, and canceled with it', async t => {
  const r = rig(t, { responseBodyBytes: 100 });
  poured = 0;
  const response = await r.scope.fetch(`${base}/endless`);
  const reader = response.body.getReader();
  assert.equal(response.body, response.body);
  assert.equal(response.body.locked, true);
  let read = 0;
  while (read < 1 << 20) read += (await reader.read()).value.length;
  await reader.cancel('enough');
  await r.ended();
  const [end] = r.of('end');
  assert.deepEqual([end.captured, end.truncated, end.canceled, end.bytes], [100, true, true, read]);
  assert.equal(r.end('res').end, 'aborted');
});

test('a body that nobody reads is not pulled, and its request ends after a while', async t => {
  const r = rig(t);
  poured = 0;
  const response = await r.scope.fetch(`${base}/endless`);
  void response.body; // looking at it is not reading it
  const settled = async () => {
    for (let last = -1; last !== poured;) { last = poured; await new Promise(f => setTimeout(f, 50)); }
    return poured;
  };
  const before = await settled();
  assert.equal(r.timers.length, 1);
  r.timers[0]();
  await r.ended();
  assert.equal(await settled(), before);
  assert.equal(r.of('end')[0].truncated, true);
  await response.body.cancel();
  assert.equal(r.of('end').length, 1);
});

test('failures, aborts and broken bodies end once, as the page sees them', async t => {
  const r = rig(t);
  await assert.rejects(r.scope.fetch('http://127.0.0.1:9/'), TypeError);
  const stop = new AbortController();
  const hang = r.scope.fetch(`${base}/hang`, { signal: stop.signal });
  stop.abort();
  await assert.rejects(hang, { name: 'AbortError' });
  const broken = await r.scope.fetch(`${base}/broken`);
  await assert.rejects(broken.text());
  const late = new AbortController();
  const endless = await r.scope.fetch(`${base}/endless`, { signal: late.signal });
  const reader = endless.body.getReader();
  await reader.read();
  late.abort();
  await assert.rejects(async () => { for (;;) await reader.read(); }, { name: 'AbortError' });
  const unread = new AbortController();
  await r.scope.fetch(`${base}/endless`, { signal: unread.signal });
  unread.abort();
  await r.ended(5);
  assert.deepEqual(r.of('error').map(e => Boolean(e.canceled)), [false, true]);
  assert.deepEqual(r.of('end').map(e => [Boolean(e.canceled), e.error !== undefined]), [[false, true], [true, true], [true, false]]);
});

test('a body that the page leaves alone makes its request no longer', async t => {
  const r = rig(t);
  await r.scope.fetch(`${base}/text`);
  const came = performance.now();
  await new Promise(resolve => setTimeout(resolve, 20));
  for (const f of r.timers.splice(0)) f();
  await r.ended();
  assert.equal(r.of('end')[0].truncated, true);
  assert.ok(r.of('end')[0].at <= came, 'the time for which we waited counts as time of the request');
});

test('an abort is told by what the platform says of it', async t => {
  const r = rig(t);
  const why = await r.scope.fetch(`${base}/text`, { signal: AbortSignal.abort() }).catch(e => e);
  assert.equal(Object.hasOwn(why, 'message'), false);
  assert.deepEqual(r.of('error').map(e => [e.text, e.canceled]), [[why.message, true]]);
});

test('what an error quotes of addresses is told as addresses are', () => {
  const text = 'cannot be constructed from http://ada:hunter2@x.test/a?token=hunter2&b=1 (/b#access_token=hunter2), "?a=1&password=hunter2"';
  assert.equal(tellable({ text }).text, text.replace('ada:hunter2', 'ada:xxxxx'));
  const told = tellable({ text, error: text }, redactor('secrets'));
  assert.doesNotMatch(told.text + told.error, /hunter2/);
  assert.match(told.text, /http:\/\/ada:xxxxx@x\.test\/a\?token=\[redacted\]&b=1/);
});

test('a patched getter has the name of the original', t => {
  const before = Object.getOwnPropertyDescriptor(Response.prototype, 'body').get;
  rig(t);
  const now = Object.getOwnPropertyDescriptor(Response.prototype, 'body').get;
  assert.notEqual(now, before);
  assert.deepEqual([now.name, now.length], [before.name, before.length]);
});

test('a response without a body ends at once', async t => {
  const r = rig(t);
  assert.equal((await r.scope.fetch(`${base}/empty`)).status, 204);
  await r.ended();
  assert.deepEqual([r.of('end')[0].bytes, r.end('res').end], [0, 'complete']);
});

test('clones: whichever is read first is seen, and both give the page everything', async t => {
  const r = rig(t);
  const response = await r.scope.fetch(`${base}/text`);
  const copy = response.clone();
  assert.equal(await copy.text(), 'hello wörld');
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) text += chunk;
  assert.equal(text, 'hello wörld');
  await r.ended();
  assert.equal(r.body('res'), 'hello wörld');
});

test('a body that is being read cannot be read otherwise, as without us', async t => {
  const r = rig(t);
  const response = await r.scope.fetch(`${base}/text`);
  const reader = response.body.getReader();
  await assert.rejects(response.text(), TypeError);
  assert.throws(() => response.clone(), TypeError);
  let n = 0;
  for (let x = await reader.read(); !x.done; x = await reader.read()) n += x.value.length;
  assert.equal(n, 12);
  assert.equal(response.bodyUsed, true);
  await r.ended();
});

test('bytes are read into the page\'s own buffers', async t => {
  const r = rig(t);
  const response = await r.scope.fetch(`${base}/text`);
  const reader = response.body.getReader({ mode: 'byob' });
  let text = '';
  for (;;) {
    const { value, done } = await reader.read(new Uint8Array(5));
    if (done) break;
    text += Buffer.from(value).toString('latin1');
  }
  assert.equal(Buffer.from(text, 'latin1').toString(), 'hello wörld');
  await r.ended();
  assert.equal(r.body('res'), 'hello wörld');
});

test('two wrappers on one fetch get along', async t => {
  const r = rig(t);
  const ours = r.scope.fetch;
  r.scope.fetch = async (...args) => {
    const response = await ours(...args);
    void response.clone().text();
    return response;
  };
  assert.equal(await (await r.scope.fetch(`${base}/text`)).text(), 'hello wörld');
  await r.ended();
});

test('a wrapper that came later goes on when natscope ends, and its request is told once', async t => {
  const r = rig(t);
  const ours = r.scope.fetch;
  let seen = 0;
  const theirs = (...args) => {
    seen++;
    return ours(...args);
  };
  r.scope.fetch = theirs;
  assert.equal(await (await r.scope.fetch(`${base}/text`)).text(), 'hello wörld');
  await r.ended();
  assert.deepEqual([seen, r.of('start').length, r.body('res')], [1, 1, 'hello wörld']);
  r.patches.restore();
  assert.equal(r.scope.fetch, theirs, 'what others put there stays');
  assert.equal(await (await r.scope.fetch(`${base}/text`)).text(), 'hello wörld');
  assert.deepEqual([seen, r.of('start').length], [2, 1], 'nothing is told after the end');
});

test('odd arguments do to the page what they did', async t => {
  const r = rig(t);
  await assert.rejects(r.scope.fetch('http://['), TypeError);
  await assert.rejects(r.scope.fetch(`${base}/text`, { method: 'BAD METHOD' }), TypeError);
  const once = (function* () { yield ['x-once', '1']; })();
  assert.equal(await (await r.scope.fetch(`${base}/text`, { headers: once })).text(), 'hello wörld');
  await r.ended(3);
});

const RULES = { secrets: true, headers: ['X-Mine'], patterns: ['hunter2 is'] };

test('what the rules name is told nowhere, and the page sees all of it', async t => {
  const r = rig(t, {}, RULES);
  const headers = { Authorization: 'Bearer hunter2', 'X-Mine': 'hunter2', 'Content-Type': 'application/json' };
  const response = await r.scope.fetch(`${base}/json?token=hunter2&a=1#access_token=hunter2`, { method: 'POST', headers, body: '{"password":"hunter2","a":1}' });
  assert.equal((await response.json()).password, 'hunter2');
  await r.ended();
  assert.equal(r.body('req'), '{"password":"[redacted]","a":1}');
  assert.equal(r.body('res'), '{"user":"ada","password":"[redacted]","list":[1]}');
  const [start] = r.of('start'), [sent] = r.of('requestBodyEnd'), [end] = r.of('end');
  assert.equal(start.url, `${base}/json?token=[redacted]&a=1#access_token=[redacted]`);
  assert.deepEqual([sent.redacted, sent.truncated, end.redacted, end.truncated], [true, undefined, true, undefined]);
  assert.equal(end.bytes, 46, 'what passed, not what is told');
  assert.ok(!JSON.stringify([r.records, r.bodies]).includes('hunter2'), JSON.stringify(r.records));
  assert.ok(JSON.stringify(r.records).includes('Bearer [redacted]') && JSON.stringify(r.records).includes('sid=[redacted]'));
});

test('what cannot be checked as a whole is withheld; types without text, and bodies without secrets, are as they were', async t => {
  const r = rig(t, {}, RULES);
  const big = await r.scope.fetch(`${base}/huge`);
  assert.equal((await big.text()).length, 2100000);
  await r.ended(1);
  await (await r.scope.fetch(`${base}/cut`)).text().catch(() => {});
  await r.ended(2);
  await (await r.scope.fetch(`${base}/picture`)).text();
  await r.ended(3);
  await (await r.scope.fetch(`${base}/text`)).text();
  await r.ended(4);
  await (await r.scope.fetch(`${base}/echo`, { method: 'POST', body: new Uint8Array([31, 139]), headers: { 'content-encoding': 'gzip' } })).text();
  await r.ended(5);
  const flags = r.of('end').map(e => [Boolean(e.redacted), Boolean(e.truncated)]);
  assert.deepEqual(flags, [[true, true], [true, true], [false, false], [false, false], [false, false]]);
  const [sent] = r.of('requestBodyEnd');
  assert.deepEqual([sent.captured, sent.truncated, sent.redacted], [0, true, true]);
  const told = Buffer.concat(r.bodies.filter(b => b.data).map(b => Buffer.from(b.data, 'base64'))).toString('latin1');
  assert.equal(told.replace('\x1f\x8b', ''), 'PNG hunter2hello w\xc3\xb6rld');
});

test('of an event stream the events are told, each checked', async t => {
  const r = rig(t, {}, RULES);
  await (await r.scope.fetch(`${base}/events`)).text();
  await r.ended();
  assert.deepEqual(r.of('message').map(m => m.data), ['{"password":"[redacted]"}', '[redacted] here', '[redacted]', 'harmless']);
  assert.equal(r.body('res'), '');
});

test('many bodies that wait to be checked are bounded', async t => {
  const r = rig(t, {}, RULES);
  const { captureBody } = await import('../shared/checked.js');
  const o = { redact: redactor(RULES), sendBody: () => true, limits: () => DEFAULT_LIMITS };
  const open = Array.from({ length: 40 }, (_, i) => captureBody(o, `r${i}`, 'res', 'text/plain'));
  for (const b of open) b.write(new Uint8Array(1 << 20));
  assert.equal(open.filter(b => !b.full).length, 16);
  for (const b of open) b.end('complete');
  const again = captureBody(o, 'x', 'res', 'text/plain');
  again.write(new Uint8Array(1 << 20));
  assert.ok(!again.full, 'what was told waits no more');
  again.end('complete');
  assert.equal(r.records.length, 0);
});

test('passwords in addresses are never told, with rules or without', () => {
  for (const [url, want] of [
    ['http://ada:p@ss:w@a.test/x?a=b@c', 'http://ada:xxxxx@a.test/x?a=b@c'], ['http://ada@a.test/', 'http://ada@a.test/'],
    ['http://a.test/x:y@z', 'http://a.test/x:y@z'], ['http://a.test/?u=http://a:b@c', 'http://a.test/?u=http://a:b@c'],
  ]) assert.equal(tellable({ url }, undefined).url, want);
});
