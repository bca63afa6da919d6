import assert from 'node:assert/strict';
import test from 'node:test';
import { Panel, WAIT } from '../shared/panel.js';
import { Agent, Bus, Tab } from './agent.js';

/** A panel on a bus, with a clock of its own. */
function setup(options = {}) {
  const bus = new Bus();
  const timers = new Map();
  let now = 0;
  let serial = 0;
  const transport = bus.connect('panel');
  const answers = [];
  const panel = new Panel({
    send: m => transport.send(m),
    setTimer: (f, ms) => { timers.set(++serial, { f, at: now + ms }); return serial; },
    clearTimer: t => timers.delete(t),
    changed: () => {}, answered: m => answers.push(m), ...options,
  });
  transport.onMessage(m => panel.receive(m));
  return {
    bus, panel, answers,
    start() { panel.start(); return this; },
    /** Lets time pass. */
    pass(ms = WAIT + 1) {
      now += ms;
      for (let due; (due = [...timers].find(([, t]) => t.at <= now));) {
        timers.delete(due[0]);
        due[1].f();
      }
    },
    page(o, tab) {
      return new Agent(bus, tab, { app: a => a.put(1, 'App', null, { count: 1 }), ...o });
    },
    value: () => panel.nodes?.get(1)?.values.count,
    sent: kind => bus.log.filter(m => m.__rsFrom === 'panel' && m.kind === kind),
  };
}

const bump = (agent, count) => agent.flush(() => agent.put(1, 'App', null, { count }));

test('the panel is open before the page loads', () => {
  const s = setup().start();
  const a = s.page();
  assert.equal(s.panel.following, a.id);
  assert.equal(a.mode, 'following');
  assert.equal(s.sent('history-request').length, 1);
  bump(a, 2);
  assert.equal(s.value(), 2);
});

test('the panel is open before the page at the remembered address loads', () => {
  const s = setup({ url: '/wanted' }).start();
  const other = s.page({ url: '/other' });
  assert.equal(s.panel.following, other.id);
  const wanted = s.page({ url: '/wanted' });
  assert.equal(s.panel.following, wanted.id);
  s.page({ url: '/wanted' });
  assert.equal(s.panel.following, wanted.id);
});

test('pages loaded before the panel: all are listed, one is followed, the others stay quiet', () => {
  const s = setup();
  const pages = [s.page(), s.page(), s.page()];
  assert.ok(pages.every(p => p.mode === 'quiet'));
  s.start();
  assert.equal(s.panel.pages.size, 3);
  assert.deepEqual(pages.map(p => p.mode), ['following', 'watched', 'watched']);
  bump(pages[1], 9);
  assert.equal(s.value(), 1);
});

test('a pick moves the panel, and what the page before sends is not shown', () => {
  const s = setup().start();
  const [a, b] = [s.page({ url: '/a' }), s.page({ url: '/b' })];
  s.panel.pick(b.id);
  assert.equal(s.panel.following, b.id);
  bump(a, 5);
  assert.equal(s.value(), 1);
  bump(b, 6);
  assert.equal(s.value(), 6);
  assert.equal(s.panel.url, '/b');
  s.page({ url: '/a', visible: true });
  assert.equal(s.panel.following, b.id, 'a picked page keeps the panel');
});

test('the followed page reloads: the new one is followed in its place, in one row', () => {
  const s = setup().start();
  const a = s.page();
  const b = a.reload();
  assert.equal(b.replaces, a.id);
  assert.equal(s.panel.following, b.id);
  assert.deepEqual([...s.panel.pages.keys()], [b.id]);
  bump(b, 3);
  assert.equal(s.value(), 3);
});

test('a reload whose bye was lost: the old page is asked, and is gone after a second', () => {
  const s = setup().start();
  const a = s.page();
  const b = a.reload({ bye: false });
  assert.equal(s.panel.following, a.id);
  assert.ok(s.sent('ping').some(m => m.to === a.id));
  s.pass();
  assert.equal(s.panel.following, b.id);
  assert.deepEqual([...s.panel.pages.keys()], [b.id]);
});

test('a panel for one tab follows the page that replaces its page at once', () => {
  const s = setup({ oneTab: true }).start();
  const a = s.page();
  const b = a.reload({ bye: false });
  assert.equal(s.panel.following, b.id);
  assert.equal(s.sent('ping').filter(m => m.to === a.id).length, 0);
});

test('bye and no new page in the wait: another is chosen, and a late reload takes the panel back', () => {
  const s = setup().start();
  const a = s.page();
  const b = s.page();
  const { tab } = a;
  a.pagehide();
  a.disconnect();
  assert.equal(s.panel.following, a.id);
  s.pass();
  assert.equal(s.panel.following, b.id);
  const late = s.page({}, tab);
  assert.equal(s.panel.following, late.id);
});

test('a late reload does not take the panel back from a page the user picked', () => {
  const s = setup().start();
  const a = s.page();
  const b = s.page();
  const { tab } = a;
  a.pagehide();
  a.disconnect();
  s.pass();
  s.panel.pick(b.id);
  s.page({}, tab);
  assert.equal(s.panel.following, b.id);
});

test('navigation on the client and a new title update the row, and the panel stays', () => {
  const s = setup({ url: '/' }).start();
  const a = s.page();
  const b = s.page({ url: '/b' });
  a.change({ url: '/next', title: 'Next' });
  assert.deepEqual([s.panel.following, s.panel.pages.get(a.id).hello.title, s.panel.url], [a.id, 'Next', '/next']);
  b.change({ title: 'B' });
  assert.equal(s.panel.following, a.id);
});

test('a tab shown or hidden does not move the panel', () => {
  const s = setup().start();
  const a = s.page({ visible: true });
  const b = s.page({ visible: false });
  a.change({ visible: false });
  b.change({ visible: true });
  assert.equal(s.panel.following, a.id);
  assert.equal(s.panel.pages.get(b.id).hello.visible, true);
});

test('a page that arrives visible takes the panel from a first page that was hidden', () => {
  const s = setup().start();
  s.page({ visible: false });
  const b = s.page({ visible: true });
  assert.equal(s.panel.following, b.id);
  const remembered = setup({ url: '/x' }).start();
  const c = remembered.page({ visible: false });
  remembered.page({ visible: true });
  assert.equal(remembered.panel.following, c.id);
});

test('the back/forward cache: the row waits, and a page back under its own id takes the panel back', () => {
  const s = setup().start();
  const a = s.page();
  a.pagehide();
  assert.ok(s.panel.pages.has(a.id));
  a.flush(() => a.put(1, 'App', null, { count: 8 }));
  assert.equal(s.value(), 1, 'nothing is said while it is away');
  const b = s.page();
  s.pass();
  assert.equal(s.panel.following, b.id);
  a.pageshow();
  assert.equal(s.panel.following, a.id);
  assert.equal(s.value(), 8);
  assert.ok(s.panel.pages.get(a.id).hello.replaces === undefined);
});

test('a copied tab: the old page answers the ping and keeps the panel; both are listed', () => {
  const s = setup().start();
  const a = s.page();
  // The copy finds the id of a page that lives.
  const b = s.page({}, a.tab.copy());
  assert.equal(b.replaces, a.id);
  s.pass();
  assert.equal(s.panel.following, a.id);
  assert.equal(s.panel.pages.size, 2);
  const own = new Tab();
  const c = s.page({}, own);
  s.panel.send({ kind: 'ping', to: c.id });
  assert.equal(own.storage.__runespect_page, c.id);
});

test('a copied tab whose page finds its own id names no page before it, and takes nothing', () => {
  const s = setup().start();
  const a = s.page();
  const copy = a.tab.copy();
  copy.storage.__runespect_page = 'the copy';
  const b = s.page({ id: 'the copy' }, copy);
  assert.equal(b.replaces, undefined);
  s.pass();
  assert.equal(s.panel.following, a.id);
  assert.deepEqual([...s.panel.pages.keys()], [a.id, b.id]);
  // It was asked whether it is there, so that it says when it goes.
  assert.equal(b.mode, 'watched');
  b.pagehide();
  assert.deepEqual([...s.panel.pages.keys()], [a.id]);
});

test('a message that stands on its own is taken although ones before it were lost', () => {
  const s = setup().start();
  const a = s.page();
  const lose = f => {
    s.bus.lose = () => true;
    bump(a, 2);
    // The answer to what the panel asks for does not come either.
    s.bus.lose = m => m.kind === 'request' || m.kind === 'history-request';
    f();
    s.bus.lose = () => false;
  };
  lose(() => a.change({ title: 'Next' }));
  assert.equal(s.panel.pages.get(a.id).hello.title, 'Next');
  assert.equal(s.value(), 1);
  s.pass();
  assert.equal(s.value(), 2, 'and what was lost is asked for');
  lose(() => a.send({ kind: 'tree', nodes: [{ ...a.nodes.get(1), values: { count: 5 } }] }));
  assert.equal(s.value(), 5);
  lose(() => a.send({ kind: 'picked', id: 1 }));
  assert.deepEqual(s.answers.at(-1).kind, 'picked');
});

test('after a gap the whole history is asked for again', () => {
  const s = setup().start();
  const a = s.page();
  bump(a, 2);
  s.bus.lose = m => m.kind === 'ops';
  bump(a, 3);
  s.bus.lose = () => false;
  bump(a, 4);
  assert.ok(s.sent('history-request').every(m => m.since === 0 && m.to === a.id));
  const history = s.answers.filter(m => m.kind === 'history');
  assert.deepEqual([history.length, history.at(-1).commits.map(c => c.seq), history.at(-1).truncated], [2, [1, 2, 3], false]);
});

test('an update lost on the way is noticed and asked for, and the ops that show the gap are not applied', () => {
  const s = setup().start();
  const a = s.page();
  s.bus.lose = m => m.kind === 'ops';
  bump(a, 2);
  s.bus.lose = m => m.kind === 'tree';
  bump(a, 3);
  assert.equal(s.value(), 1);
  assert.match(s.panel.events[0].what, /1 messages before \d+ were lost/);
  s.bus.lose = () => false;
  s.pass();
  assert.equal(s.value(), 3);
  assert.ok(s.sent('history-request').length >= 2);
});

test('what was lost is asked for at most three times', () => {
  const s = setup().start();
  const a = s.page();
  const before = s.sent('request').length;
  let n = 0;
  s.bus.lose = m => m.kind === 'ops' && n++ === 0 || m.kind === 'tree';
  bump(a, 2);
  bump(a, 3);
  for (let i = 0; i < 20; i++) s.pass();
  assert.ok(s.sent('request').length - before <= 3, `${s.sent('request').length - before} requests`);
  assert.ok(s.panel.events.some(e => /does not send what was lost/.test(e.what)));
});

test('a gap from another page is only reported, and a message heard before is dropped', () => {
  const s = setup().start();
  s.page();
  const b = s.page();
  const before = s.sent('request').length;
  s.bus.lose = m => m.from === b.id;
  b.change({ title: 'lost' });
  s.bus.lose = () => false;
  b.change({ title: 'heard' });
  assert.equal(s.panel.events.length, 1);
  s.panel.receive({ source: 'runespect', kind: 'hello', from: b.id, n: b.n, title: 'twice', version: 1 });
  assert.equal(s.panel.pages.get(b.id).hello.title, 'heard');
  assert.equal(s.panel.events.length, 2);
  assert.equal(s.sent('request').length, before);
});

test('a request by name that is lost is sent again until the tree comes', () => {
  const s = setup().start();
  let lost = 0;
  s.bus.lose = m => m.kind === 'request' && m.to !== undefined && lost++ < 4;
  const a = s.page();
  assert.equal(a.mode, 'quiet');
  for (let i = 0; i < 5; i++) s.pass();
  assert.equal(a.mode, 'following');
  assert.equal(s.value(), 1);
});

test('a reconnecting panel gets its tree again', () => {
  const s = setup().start();
  const a = s.page();
  s.bus.lose = m => m.kind === 'ops';
  bump(a, 4);
  s.bus.lose = () => false;
  s.panel.reconnected();
  assert.equal(s.value(), 4);
});

test('a disconnected page does nothing more', () => {
  const s = setup().start();
  const a = s.page();
  s.panel.tell({ kind: 'pick', active: true });
  s.panel.tell({ kind: 'highlight', id: 1 });
  assert.deepEqual([a.picking, a.highlighted], [true, 1]);
  a.disconnect();
  assert.deepEqual([a.picking, a.highlighted], [false, null]);
  const said = s.bus.log.length;
  a.did.length = 0;
  bump(a, 9);
  a.change({ title: 'Over' });
  assert.equal(s.bus.log.length, said, 'it says nothing, not even goodbye');
  s.panel.tell({ kind: 'log', id: 1 });
  assert.deepEqual(a.did, []);
});

test('a capture answers no ping, and its row stays; the names-only walk is shown when there is nothing else', () => {
  const s = setup().start();
  const say = m => s.panel.receive({ source: 'runespect', ...m });
  say({ kind: 'hello', version: 1, tier: 2, problem: 'nothing found' });
  assert.equal(s.panel.following, '');
  s.pass(60000);
  assert.ok(s.panel.pages.has(''));
  const names = setup().start();
  names.panel.receive({ source: 'runespect', kind: 'tree', nodes: [{ id: 1, name: 'App', parent: null, children: [], values: {} }] });
  assert.equal(names.panel.nodes.get(1).name, 'App');
  names.panel.receive({ source: 'runespect', kind: 'tree', nodes: [] });
  assert.equal(names.panel.nodes.size, 1, 'an empty tree does not take a tree away');
});

test('a capture beside a page with an agent: its row stays though nothing answers, and the page keeps the panel', () => {
  const s = setup().start();
  const a = s.page();
  const asked = s.sent('request').length;
  s.panel.receive({ source: 'runespect', kind: 'hello', version: 1, tier: 2 });
  s.pass(60000);
  assert.deepEqual([...s.panel.pages.keys()], [a.id, '']);
  assert.equal(s.panel.following, a.id);
  s.panel.receive({ source: 'runespect', kind: 'tree', nodes: [{ id: 1, name: 'Captured', parent: null, children: [], values: {} }] });
  assert.equal(s.value(), 1);
  assert.equal(s.sent('request').length, asked, 'it is not asked again and again');
  // One that was there first gives way to an agent, which knows more.
  const other = setup().start();
  other.panel.receive({ source: 'runespect', kind: 'hello', version: 1, tier: 2 });
  other.panel.receive({ source: 'runespect', kind: 'tree', nodes: [{ id: 1, name: 'Captured', parent: null, children: [], values: {} }] });
  assert.equal(other.panel.nodes.get(1).name, 'Captured');
  const b = other.page();
  assert.equal(other.panel.following, b.id);
  assert.equal(other.panel.nodes.get(1).name, 'App');
});

test('a sender with an id that answers no ping keeps its row', () => {
  const s = setup().start();
  const a = s.page();
  s.panel.receive({ source: 'runespect', kind: 'hello', from: 'silent', n: 1, version: 1 });
  assert.deepEqual(s.sent('ping').map(m => m.to), ['silent']);
  for (let i = 0; i < 10; i++) s.pass();
  assert.deepEqual([...s.panel.pages.keys()], [a.id, 'silent']);
  assert.equal(s.sent('ping').length, 1);
});

test('the followed page hides and comes back within the wait: it stays, and its tree is fresh', () => {
  const s = setup().start();
  const a = s.page();
  a.pagehide();
  a.put(1, 'App', null, { count: 4 });
  a.pageshow();
  assert.equal(s.panel.following, a.id);
  s.pass();
  s.pass();
  assert.equal(s.panel.following, a.id);
  assert.equal(s.value(), 4);
  bump(a, 6);
  assert.equal(s.value(), 6, 'it sends its flushes again');
});

test('a picked page that reloads stays picked, its goodbye heard or not', () => {
  for (const bye of [true, false]) {
    const s = setup().start();
    const first = s.page({ url: '/first' });
    const a = s.page({ url: '/picked' });
    s.panel.pick(a.id);
    const b = a.reload({ bye });
    s.pass();
    assert.equal(s.panel.following, b.id);
    assert.equal(s.panel.reason, 'picked');
    first.reload();
    s.page({ url: '/picked', visible: true });
    s.pass();
    assert.equal(s.panel.following, b.id);
  }
});

test('an agent that always counts from 1 is not asked without end', () => {
  const s = setup().start();
  let asked = 0;
  s.bus.connect('odd').onMessage(m => {
    if (m.kind !== 'request' || asked > 100) return;
    asked++;
    s.panel.receive({ source: 'runespect', kind: 'hello', from: 'odd', n: 1, version: 1 });
  });
  s.panel.receive({ source: 'runespect', kind: 'hello', from: 'odd', n: 1, version: 1 });
  for (let i = 0; i < 5; i++) s.pass();
  assert.ok(asked < 10, `${asked} requests`);
});

test('a page that connects again counts from 1, and another version is said', () => {
  const s = setup().start();
  const a = s.page();
  a.n = 0;
  // Nobody has asked the new connection for anything.
  a.mode = 'quiet';
  a.hello();
  assert.equal(a.mode, 'following');
  bump(a, 7);
  assert.equal(s.value(), 7);
  assert.equal(s.panel.events.length, 0);
  s.page({ version: 9 });
  assert.match(s.panel.events[0].what, /version 9/);
});

test('nonsense changes nothing', () => {
  const s = setup().start();
  for (const m of [null, 5, {}, { source: 'other' }, { source: 'runespect' }, { source: 'runespect', kind: 'ops', ops: 5 }, { source: 'runespect', kind: 'tree', nodes: [null, 7, { id: 'x' }] }]) s.panel.receive(m);
  const a = s.page();
  s.panel.receive({ source: 'runespect', from: a.id, kind: 'ops', ops: [null, { op: 'add' }, { op: 'update', node: 5 }] });
  assert.equal(s.value(), 1);
});
