import assert from 'node:assert/strict';
import test from 'node:test';
import { Link } from '../shared/link.js';

/** A world with a clock of its own, in which every socket is a fake. */
function world() {
  const w = { now: 0, timers: [], sockets: [], messages: [], downs: 0, refused: [] };
  w.advance = ms => {
    const until = w.now + ms;
    for (;;) {
      const due = w.timers.filter(t => t.at <= until).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      w.timers.splice(w.timers.indexOf(due), 1);
      w.now = due.at;
      due.f();
    }
    w.now = until;
  };
  w.link = new Link({
    url: 'ws://x/ingest', token: 'T',
    connect(url, protocols, events) {
      const s = { url, protocols, events, sent: [], closed: false, send(t) { this.sent.push(JSON.parse(t)); }, close() { this.closed = true; } };
      w.sockets.push(s);
      return s;
    },
    hello: () => ({ type: 'hello', version: 1, id: 'i', realm: 'r', now: w.now }),
    message: m => w.messages.push(m),
    down: () => w.downs++,
    refused: reason => w.refused.push(reason),
    now: () => w.now,
    setTimer(f, ms) { const t = { f, at: w.now + ms }; w.timers.push(t); return t; },
    clearTimer(t) { const i = w.timers.indexOf(t); if (i >= 0) w.timers.splice(i, 1); },
    random: () => 1,
  });
  w.last = () => w.sockets.at(-1);
  w.welcome = () => {
    w.last().events.open();
    w.last().events.message(JSON.stringify({ type: 'welcome', source: 's', last: 0, limits: { reconnectMin: 250, reconnectMax: 5000 } }));
  };
  return w;
}

test('a link says hello and is welcomed', () => {
  const w = world();
  w.link.start();
  assert.deepEqual(w.last().protocols, ['natscope.1', 'natscope.token.T']);
  assert.equal(w.link.send('early'), false);
  w.welcome();
  assert.equal(w.last().sent[0].type, 'hello');
  assert.equal(w.link.state, 'up');
  assert.equal(w.link.send('{"n":1}'), true);
});

test('it comes back after 250 ms at first, and after 5 s at most', () => {
  const w = world();
  w.link.start();
  const waits = [];
  for (let i = 0; i < 8; i++) {
    const before = w.now;
    const n = w.sockets.length;
    w.last().events.close();
    while (w.sockets.length === n) w.advance(1);
    waits.push(w.now - before);
  }
  assert.deepEqual(waits, [250, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
  w.welcome();
  w.last().events.close();
  assert.equal(w.downs, 1);
  const n = w.sockets.length;
  w.advance(250);
  assert.equal(w.sockets.length, n + 1, 'an admission starts the backoff anew');
});

test('there is one socket at a time, and late events of others change nothing', () => {
  const w = world();
  w.link.start();
  const old = w.last();
  w.advance(10000); // never welcomed
  assert.equal(old.closed, true);
  w.advance(5000);
  w.welcome();
  const n = w.sockets.length;
  old.events.message('{"type":"rejected","code":"token","reason":"x","retry":false}');
  old.events.close();
  w.advance(1000);
  assert.equal(w.link.state, 'up');
  assert.equal(w.sockets.length, n);
});

test('a rejection without retry is final and told once', () => {
  const w = world();
  w.link.start();
  w.last().events.open();
  w.last().events.message('{"type":"rejected","code":"token","reason":"wrong token","retry":false}');
  w.last().events.close();
  w.advance(60000);
  assert.equal(w.sockets.length, 1);
  assert.deepEqual(w.refused, ['wrong token']);
});

test('a rejection with retry is a reason to come back', () => {
  const w = world();
  w.link.start();
  w.welcome();
  w.last().events.message('{"type":"rejected","code":"closing","reason":"bye","retry":true}');
  w.advance(250);
  assert.equal(w.sockets.length, 2);
});

test('a dead network is noticed, a quiet one is not taken for it', () => {
  const w = world();
  w.link.start();
  w.welcome();
  w.advance(25000);
  assert.equal(w.last().sent.at(-1).type, 'ping');
  w.last().events.message('{"type":"pong"}');
  w.advance(20000);
  assert.equal(w.downs, 0);
  w.advance(15000);
  assert.equal(w.downs, 1);
});

test('a ping is answered', () => {
  const w = world();
  w.link.start();
  w.welcome();
  w.last().events.message('{"type":"ping"}');
  assert.equal(w.last().sent.at(-1).type, 'pong');
});

test('a nudge ends a wait, a stop ends everything', () => {
  const w = world();
  w.link.start();
  for (let i = 0; i < 5; i++) { w.last().events.close(); w.advance(5000); }
  w.last().events.close();
  const n = w.sockets.length;
  w.link.nudge();
  assert.equal(w.sockets.length, n + 1);
  w.link.nudge();
  assert.equal(w.sockets.length, n + 1);
  w.link.stop();
  w.last().events.close();
  w.advance(60000);
  assert.equal(w.sockets.length, n + 1);
});

test('nonsense from the server changes nothing', () => {
  const w = world();
  w.link.start();
  w.last().events.open();
  for (const data of ['', '{', 'null', '[]', '{"type":"welcome"}', '{"type":"hologram"}', new ArrayBuffer(3), '{"type":"ack","n":-1}']) w.last().events.message(data);
  assert.equal(w.link.state, 'connecting');
  assert.deepEqual(w.messages, []);
});

test('a constructor that throws ends it with the reason where no attempt can help, and else is an attempt that failed', () => {
  for (const [error, state, refused] of [
    [new DOMException('the subprotocol is invalid', 'SyntaxError'), 'stopped', ['the subprotocol is invalid']],
    [new DOMException('the page was loaded over HTTPS', 'SecurityError'), 'stopped', ['the page was loaded over HTTPS']],
    [new Error('no memory'), 'waiting', []],
  ]) {
    const w = world();
    w.link.o.connect = () => { throw error; };
    w.link.start();
    assert.deepEqual([w.link.state, w.refused], [state, refused]);
  }
});

test('without an address the page\'s own server is not asked for ever', () => {
  for (const [url, token] of [[undefined, 'T'], ['', 'T'], ['x', 'T'], ['/ingest', 'T'], ['ws://x/ingest', undefined]]) {
    const w = world();
    Object.assign(w.link.o, { url, token });
    w.link.start();
    assert.deepEqual([w.link.state, w.sockets.length, w.timers.length], ['stopped', 0, 0]);
    assert.match(w.refused.join(), /^start needs a url and a token/);
  }
});
