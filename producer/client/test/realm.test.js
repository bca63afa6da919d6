import assert from 'node:assert/strict';
import test from 'node:test';
import * as inspection from '../node/inspection.js';
import { Faults } from '../shared/faults.js';
import { Realm, answerParts } from '../shared/realm.js';
import { Tree } from '../shared/tree.js';

/** A realm of this process, with one open session. */
function setup({ handles = 10000, change = {} } = {}) {
  const sent = [];
  const faults = new Faults();
  const tree = new Tree(() => ({ nodes: 100, depth: 10 }));
  let now = 0;
  const realm = new Realm({
    scope: globalThis, inspection: { ...inspection, ...change }, faults, send: text => sent.push(JSON.parse(text)), handles: () => handles, now: () => now,
    trees: { live: id => tree.live(id), nodeOf: v => tree.nodeOf(v) },
    sources: () => { throw new Error('none here'); },
  });
  let id = 0;
  const ask = async (method, params = {}, session = 's') => {
    const mine = ++id;
    await realm.receive({ type: 'command', id: mine, method, params, session });
    const answers = sent.filter(m => m.id === mine);
    if (answers[0]?.type === 'part') return JSON.parse(answers.map(p => p.text).join(''));
    assert.equal(answers.length, 1, `${method} has ${answers.length} answers`);
    return answers[0];
  };
  const get = async (method, params, session) => {
    const a = await ask(method, params, session);
    assert.ok(a.ok, `${method}: ${a.error?.message}`);
    return a.result;
  };
  const ready = get('session.open');
  return {
    realm, sent, faults, tree, ask, ready, get,
    pass: ms => { now += ms; },
    evaluate: (expression, more = {}) => get('runtime.evaluate', { expression, replMode: true, ...more }),
  };
}

test('primitives are values, each distinguishable', async () => {
  const { evaluate } = setup();
  for (const [code, want] of Object.entries({
    'undefined': { type: 'undefined' }, 'null': { type: 'object', subtype: 'null', value: null }, 'true': { type: 'boolean', value: true },
    '1.5': { type: 'number', value: 1.5, description: '1.5' }, '-0': { type: 'number', unserializableValue: '-0', description: '-0' },
    'NaN': { type: 'number', unserializableValue: 'NaN', description: 'NaN' }, '-1/0': { type: 'number', unserializableValue: '-Infinity', description: '-Infinity' },
    '10n': { type: 'bigint', unserializableValue: '10n', description: '10n' }, '"a\\n"': { type: 'string', value: 'a\n' },
  })) assert.deepEqual((await evaluate(code)).result, want, code);
});

test('objects have the kind, class and description that the engine itself would give', async () => {
  const { evaluate } = setup();
  const cases = {
    '({})': ['object', undefined, 'Object', 'Object'],
    '[1,2,3]': ['object', 'array', 'Array', 'Array(3)'],
    'Map.prototype': ['object', undefined, 'Map', 'Map'],
    'Promise.prototype': ['object', undefined, 'Promise', 'Promise'],
    'Array.prototype': ['object', 'array', 'Array', 'Array(0)'],
    '(class A {}).prototype': ['object', undefined, 'Object', 'Object'],
    'new Map([[1,2]])': ['object', 'map', 'Map', 'Map(1)'],
    'new Set([1,2])': ['object', 'set', 'Set', 'Set(2)'],
    'new WeakMap': ['object', 'weakmap', 'WeakMap', 'WeakMap'],
    'new WeakSet': ['object', 'weakset', 'WeakSet', 'WeakSet'],
    '/a\\/b/gi': ['object', 'regexp', 'RegExp', '/a\\/b/gi'],
    'new Uint8Array(4)': ['object', 'typedarray', 'Uint8Array', 'Uint8Array(4)'],
    'new ArrayBuffer(8)': ['object', 'arraybuffer', 'ArrayBuffer', 'ArrayBuffer(8)'],
    'new DataView(new ArrayBuffer(8))': ['object', 'dataview', 'DataView', 'DataView(8)'],
    'Promise.resolve(1)': ['object', 'promise', 'Promise', 'Promise'],
    '(function* g(){})()': ['object', 'generator', 'Generator', 'Generator'],
    'new Map().keys()': ['object', 'iterator', 'Map Iterator', 'Map Iterator'],
    'new (class Cart {})': ['object', undefined, 'Cart', 'Cart'],
    'Object.create(null)': ['object', undefined, 'Object', 'Object'],
    'new Proxy([], {})': ['object', 'proxy', 'Proxy', 'Proxy'],
    'Symbol("x")': ['symbol', undefined, undefined, 'Symbol(x)'],
    '(function f(a) { return a })': ['function', undefined, 'Function', 'function f(a) { return a }'],
    '(async () => 1)': ['function', undefined, 'AsyncFunction', 'async () => 1'],
    'class A {}; A': ['function', undefined, 'Function', 'class A {}'],
    'new Number(5)': ['object', undefined, 'Number', 'Number'],
  };
  for (const [code, want] of Object.entries(cases)) {
    const { result } = await evaluate(code);
    assert.deepEqual([result.type, result.subtype, result.className, result.description], want, code);
    assert.match(result.objectId, /^\d+$/, code);
  }
  const date = (await evaluate('new Date(0)')).result;
  assert.deepEqual([date.subtype, date.description], ['date', String(new Date(0))]);
  const error = (await evaluate('new TypeError("wrong")')).result;
  assert.deepEqual([error.subtype, error.className], ['error', 'TypeError']);
  assert.match(error.description, /^TypeError: wrong\n {4}at <anonymous>:1:1$/);
});

test('a console\'s declarations stay, and may be declared again', async () => {
  const { evaluate, get } = setup();
  const value = async code => (await evaluate(code)).result.value;
  assert.equal(await value('let kept = 1'), undefined);
  assert.equal(await value('kept'), 1);
  assert.equal(await value('let kept = 2; kept + 1'), 3);
  assert.equal(await value('const kept = 5, {a, b: [c = 7]} = {a: 1, b: []}\na + c + kept'), 13);
  assert.equal(await value('class Kept { static n = 4 }\nKept.n'), 4);
  assert.equal(await value('class Kept { static n = 5 }; Kept.n'), 5);
  assert.equal(await value('let name = 1; name'), 1);
  assert.equal(await value('function hoisted() { return 6 }\nhoisted()'), 6);
  const names = (await get('runtime.globalLexicalScopeNames')).names;
  for (const n of ['kept', 'a', 'c', 'Kept', 'name']) assert.ok(names.includes(n), n);
  assert.equal('kept' in globalThis, false);
});

test('await stands at the top', async () => {
  const { evaluate } = setup();
  const value = async code => (await evaluate(code)).result.value;
  assert.equal(await value('await 1'), 1);
  assert.equal(await value('const w = await Promise.resolve(41)\nw + 1 // done'), 42);
  assert.equal(await value('w'), 41);
  assert.equal(await value('for (var i = 0; i < 3; i++) { var seen = await i }\nseen'), 2);
  assert.equal(await value('i'), 3);
  assert.equal(await value('await null; function late() { return 9 }\nlate()'), 9);
  assert.equal(await value('late()'), 9);
  assert.equal(await value('if (true) { await null; var deep = 3 }'), undefined);
  assert.equal(await value('deep'), 3);
  assert.equal(await value('await Promise.all([1, 2].map(async x => { let y = await x; return y * 2 })).then(l => l.join())'), '2,4');
  assert.equal((await evaluate('Promise.resolve(1)')).result.subtype, 'promise');
  assert.equal((await evaluate('Promise.resolve(1)', { awaitPromise: true })).result.value, 1);
  const { exceptionDetails } = await evaluate('await Promise.reject(new Error("no"))');
  assert.match(exceptionDetails.exception.description, /^Error: no/);
});

test('code that is hard to read is evaluated as the engine reads it', async () => {
  const { evaluate } = setup();
  const cases = [
    ['let r1 = /[/}]{1}/.test("}"); r1', true], ['let r2 = 8 / 2 / 2\nr2', 2], ['let t1 = `a${`b${{ c: "}" }.c}`}`; t1', 'ab}'],
    ['let o1 = { let: 1, of: 2, async: 3 }\no1.let + o1.of', 3], ['let l1 = 1\n;[2].forEach(x => l1 += x)\nl1', 3],
    ['let f1 = x => ({ y: x }).y\nf1(4)', 4], ['let f2 = function ()\n{ return 5 }\nf2()', 5], ['let i1 = 1\n++i1\ni1', 2],
    ['let c1 = class { static x = /}/ }, c2 = 3; c2', 3], ['label: for (const x of [1]) { continue label }\nlet l2 = 1; l2', 1],
    ['let s1 = "it\'s // no comment"; s1.length', 18], ['let a1 = 1 /* ; */ + 1 // let a1 = 5\na1', 2],
    ['let g1 = () => {}\nlet g2 = 7\ng2', 7], ['let n1 = 1_000.5e1 + 0xff + .5\nn1', 10260.5], ['let $ü = 1; $ü', 1],
    ['do var d1 = 1; while (false)\nlet d2 = d1; d2', 1], ['if (0) ; else { let e1 = 1 }\nlet e2 = 4; e2', 4],
    ['switch (1) { case 1: let sw = 2 }\nlet sw2 = 3; sw2', 3], ['try { throw 1 } catch { let ca = 1 } finally { }\nlet tr = 8; tr', 8],
    ['let { [`k${1}`]: comp, ...others } = { k1: 2, z: 3 }; comp + others.z', 5], ['var v1 = 1; let v2 = v1; { let v2 = 9 } v2', 1],
    ['let yielded = (function* () { yield /x/ })().next().value.source; yielded', 'x'], ['let let2 = 5; let2', 5],
    ['let op = 4\nlet q = op\n/2/1\nq', 2], ['new.target', undefined], ['let \\u0061b = 1; ab', 1], ['async () => { await 1 }; 3', 3],
    ['let v = 1, w2\nw2', undefined], ['let opt = null?.x ?? 6; opt', 6], ['"use strict"; let st = 1; st', 1], ['let arrowInParens = (a = /,/, b) => a.source; arrowInParens()', ','],
  ];
  for (const [code, want] of cases) {
    const { result, exceptionDetails } = await evaluate(code);
    if (code === 'new.target') assert.match(exceptionDetails.exception.description, /^SyntaxError/);
    else assert.equal(result.value, want, `${code}: ${exceptionDetails?.exception.description}`);
  }
});

test('errors are told as the page\'s author would see them', async () => {
  const { evaluate } = setup();
  const { result, exceptionDetails } = await evaluate('1;\n  nothing.here');
  assert.equal(result.subtype, 'error');
  assert.match(exceptionDetails.exception.description, /^ReferenceError: nothing is not defined\n {4}at <anonymous>:2:3$/);
  assert.deepEqual([exceptionDetails.text, exceptionDetails.lineNumber, exceptionDetails.columnNumber], ['Uncaught', 1, 2]);
  const thrown = await evaluate('throw 5');
  assert.deepEqual([thrown.result.value, thrown.exceptionDetails.exception.value], [5, 5]);
  assert.match((await evaluate('let =')).exceptionDetails.exception.description, /^SyntaxError: Unexpected end of input/);
  assert.match((await evaluate('function boom() { throw new Error("b") }\nboom()')).result.description, /at boom \(<anonymous>:1:\d+\)\n {4}at <anonymous>:2:1$/);
});

test('compileScript says in the engine\'s words what is missing, and runs nothing', async () => {
  const { get } = setup();
  const check = async expression => (await get('runtime.compileScript', { expression })).exceptionDetails?.exception.description.split('\n')[0];
  for (const code of ['1 + 1', 'let x = 1', 'await 1', 'const { a } = await b', 'globalThis.ran = true']) assert.equal(await check(code), undefined, code);
  assert.equal('ran' in globalThis, false);
  for (const code of ['function f() {', 'if (true) {', '[1,', 'await fetch(', 'const a = {', 'for (;;) {\n  await x']) assert.equal(await check(code), 'SyntaxError: Unexpected end of input', code);
  assert.match(await check('`abc'), /^SyntaxError: (Unterminated template literal|Unexpected end of input)$/);
  assert.equal(await check('var a b'), "SyntaxError: Unexpected identifier 'b'");
  assert.equal(await check('globalThis.ran = 1; }'), "SyntaxError: Unexpected token '}'");
  assert.equal('ran' in globalThis, false);
});

test('properties: own, inherited, symbols, and no accessor is called', async () => {
  const { evaluate, get } = setup();
  globalThis.called = 0;
  const { result } = await evaluate('class P { get up() { called++ } m() {} }; globalThis.sub = Object.defineProperty(Object.assign(new P, { a: 1, [Symbol("s")]: 2 }), "hidden", { get() { called++ }, value: undefined } && { value: 3 }); Object.defineProperty(sub, "g", { get() { called++; return 5 }, enumerable: true, configurable: true }); sub');
  const own = await get('runtime.getProperties', { objectId: result.objectId, ownProperties: true, generatePreview: true });
  const by = Object.fromEntries(own.result.map(p => [p.name, p]));
  assert.deepEqual(Object.keys(by).sort(), ['Symbol(s)', 'a', 'g', 'hidden']);
  assert.deepEqual([by.a.value.value, by.a.enumerable, by.a.isOwn, by.hidden.enumerable], [1, true, true, false]);
  assert.deepEqual([by.g.get.type, by.g.set.type, 'value' in by.g], ['function', 'undefined', false]);
  assert.equal(by['Symbol(s)'].symbol.type, 'symbol');
  assert.deepEqual(own.internalProperties.map(p => p.name), ['[[Prototype]]']);
  const all = await get('runtime.getProperties', { objectId: result.objectId });
  const up = all.result.find(p => p.name === 'up');
  assert.deepEqual([up.isOwn, up.get.type], [false, 'function']);
  assert.ok(all.result.some(p => p.name === 'hasOwnProperty' && !p.isOwn));
  const accessors = await get('runtime.getProperties', { objectId: result.objectId, accessorPropertiesOnly: true });
  assert.ok(accessors.result.every(p => p.get) && accessors.result.some(p => p.name === 'g') && !accessors.internalProperties);
  assert.equal(globalThis.called, 0);
  const invoked = await get('runtime.callFunctionOn', { objectId: result.objectId, functionDeclaration: 'function (a) { return this[a] }', arguments: [{ value: 'g' }] });
  assert.equal(invoked.result.value, 5);
  delete globalThis.called;
});

test('internal slots: entries of maps and sets, views of buffers, boxed values, and no promise state', async () => {
  const { evaluate, get } = setup();
  const internals = async code => {
    const { result } = await evaluate(code);
    return (await get('runtime.getProperties', { objectId: result.objectId, ownProperties: true })).internalProperties;
  };
  const [entries] = await internals('new Map([["k", { v: 1 }], [2, 3]])');
  assert.equal(entries.name, '[[Entries]]');
  const list = await get('runtime.getProperties', { objectId: entries.value.objectId, ownProperties: true });
  assert.deepEqual([list.result[0].value.subtype, list.result[0].value.description, list.result[1].value.description], ['internal#entry', '{"k" => Object}', '{2 => 3}']);
  const entry = await get('runtime.getProperties', { objectId: list.result[0].value.objectId, ownProperties: true });
  assert.deepEqual(entry.result.map(p => p.name), ['key', 'value']);
  assert.deepEqual((await internals('new ArrayBuffer(4)')).map(p => p.name), ['[[Int8Array]]', '[[Uint8Array]]', '[[Int16Array]]', '[[Int32Array]]', '[[ArrayBufferByteLength]]', '[[Prototype]]']);
  assert.equal((await internals('Object(5n)')).find(p => p.name === '[[PrimitiveValue]]').value.unserializableValue, '5n');
  assert.deepEqual((await internals('Promise.resolve(1)')).map(p => p.name), ['[[Prototype]]']);
});

test('what a Proxy does when it is looked at is not called where it is known as one', async () => {
  const { evaluate, get } = setup();
  const { result } = await evaluate('globalThis.traps = 0; new Proxy({ a: 1 }, new Proxy({}, { get() { traps++; return undefined } }))', { generatePreview: true });
  assert.deepEqual((await get('runtime.getProperties', { objectId: result.objectId, ownProperties: true })).result, []);
  assert.equal(globalThis.traps, 0);
  delete globalThis.traps;
});

test('a Proxy that throws in a page shows what it let be seen', async () => {
  const { evaluate, get } = setup({ change: { isProxy: () => false } });
  const { result } = await evaluate('new Proxy({ a: 1 }, { getOwnPropertyDescriptor() { throw new Error("no") }, getPrototypeOf() { throw new Error("neither") } })', { generatePreview: true });
  assert.equal(result.type, 'object');
  const { result: own } = await get('runtime.getProperties', { objectId: result.objectId, ownProperties: true });
  assert.deepEqual([own[0].name, own[0].wasThrown], ['a', true]);
});

test('previews are small and call nothing', async () => {
  const { evaluate } = setup();
  const preview = async code => (await evaluate(code, { generatePreview: true })).result.preview;
  const p = await preview('({ a: 1, b: "x".repeat(300), c: [1], d: () => 1, e: null, f: 6 })');
  assert.deepEqual(p.properties.map(x => [x.name, x.type, x.subtype, x.value?.slice(0, 5)]), [['a', 'number', undefined, '1'], ['b', 'string', undefined, 'xxxxx'], ['c', 'object', 'array', 'Array'], ['d', 'function', undefined, 'd'], ['e', 'object', 'null', 'null']]);
  assert.equal(p.overflow, true);
  assert.equal(p.properties[1].value.length, 100);
  const list = await preview('Array.from({ length: 1e6 }, (_, i) => i)');
  assert.deepEqual([list.properties.length, list.overflow, list.description], [100, true, 'Array(1000000)']);
  const map = await preview('new Map([[{ a: 1 }, "v"]])');
  assert.deepEqual([map.entries[0].key.description, map.entries[0].value.description], ['Object', 'v']);
  assert.deepEqual((await preview('({ get g() { throw 1 } })')).properties, [{ name: 'g', type: 'accessor' }]);
});

test('by value, and what cannot be', async () => {
  const { evaluate, ask } = setup();
  assert.deepEqual((await evaluate('({ a: [1, undefined, { b: null }], f() {}, u: undefined })', { returnByValue: true })).result.value, { a: [1, null, { b: null }], f: {} });
  for (const code of ['let cy = {}; cy.cy = cy; cy', 'Symbol()']) {
    assert.equal((await ask('runtime.evaluate', { expression: code, replMode: true, returnByValue: true })).error.code, 'failed', code);
  }
});

test('a wide object is told in pages', async () => {
  const { evaluate, get } = setup();
  const { result } = await evaluate('Object.fromEntries(Array.from({ length: 4500 }, (_, i) => ["k" + i, i]))');
  const names = [];
  for (let objectId = result.objectId; objectId;) {
    const { result: list } = await get('runtime.getProperties', { objectId, ownProperties: true });
    assert.ok(list.length <= 2001);
    const more = list.at(-1).name.startsWith('…') ? list.pop() : undefined;
    names.push(...list.map(p => p.name));
    objectId = more?.value.objectId;
  }
  assert.equal(names.length, 4500);
});

test('sessions are apart, handles are bounded and released', async () => {
  const { evaluate, ask, get, realm } = setup({ handles: 50 });
  const first = (await evaluate('({ first: 1 })', { objectGroup: 'g' })).result.objectId;
  assert.equal((await ask('runtime.evaluate', { expression: '1' }, 'other')).error.code, 'no-session');
  await get('session.open', {}, 'other');
  assert.equal((await ask('runtime.getProperties', { objectId: first }, 'other')).error.code, 'object-not-found');
  await get('runtime.releaseObjectGroup', { objectGroup: 'g' }, 'other');
  assert.equal((await get('runtime.getProperties', { objectId: first, ownProperties: true })).result[0].name, 'first');
  await get('runtime.releaseObjectGroup', { objectGroup: 'g' });
  assert.match((await ask('runtime.getProperties', { objectId: first })).error.message, /holds no such object/);
  const old = (await evaluate('({})')).result.objectId;
  for (let i = 0; i < 60; i++) await evaluate('({})');
  assert.match((await ask('runtime.getProperties', { objectId: old })).error.message, /released, because more than 50 objects/);
  const held = (await evaluate('({})')).result.objectId;
  await get('runtime.releaseObject', { objectId: held });
  assert.equal((await ask('runtime.getProperties', { objectId: held })).ok, false);
  await get('session.close');
  assert.equal((await ask('runtime.evaluate', { expression: '1' })).error.message, 'no session; open one');
  assert.equal(realm.sessions.size, 1);
});

test('nothing runs when it must have no effect, but what is just there is told', async () => {
  const { get, evaluate } = setup();
  await evaluate('let eager = 3');
  const pure = async expression => get('runtime.evaluate', { expression, throwOnSideEffect: true });
  assert.equal((await pure('eager')).result.value, 3);
  assert.equal((await pure(' 12 ')).result.value, 12);
  assert.equal((await pure('globalThis')).result.type, 'object');
  assert.equal((await pure('process')).result.className, 'process');
  for (const code of ['globalThis.sneaky = 1', 'eager++', 'nothingHere', 'eager.x', 'f()']) {
    const { exceptionDetails } = await pure(code);
    assert.ok(exceptionDetails.exception.description.startsWith('EvalError: Possible side-effect in debug-evaluate'), code);
  }
  assert.equal('sneaky' in globalThis, false);
});

test('console arguments are kept while somebody looks', async () => {
  const { realm, get, ask, pass } = setup();
  const live = { changed: false };
  const ref = realm.keep([1, live]);
  live.changed = true;
  const { object } = await get('console.resolve', { ref, arg: 1, objectGroup: 'console' });
  assert.equal((await get('runtime.getProperties', { objectId: object.objectId, ownProperties: true })).result[0].value.value, true);
  for (const p of [{ ref, arg: 2 }, { ref, arg: -1 }, { ref: 99, arg: 0 }, {}]) assert.equal((await ask('console.resolve', p)).error.code, 'object-not-found');
  for (let i = 0; i < 1000; i++) realm.keep([i]);
  assert.equal((await ask('console.resolve', { ref, arg: 1 })).ok, false);
  assert.equal(realm.calls.size, 1000);
  pass(3600000);
  realm.keep([]);
  assert.equal(realm.calls.size, 1);
  await get('session.close');
  assert.deepEqual([realm.calls.size, realm.keep([1])], [0, 0]);
});

test('a node has a live object and is found by it; $0 to $4, $_ and the console\'s own names', async () => {
  const { tree, get, evaluate, ask, sent } = setup();
  const n = tree.add('Cart', { items: [1, 2] });
  const { object } = await get('tree.resolve', { id: n.id, objectGroup: 'dom' });
  assert.deepEqual([object.subtype, object.className, object.description], ['node', 'Cart', 'Cart']);
  assert.deepEqual(await get('tree.nodeOf', { objectId: object.objectId }), { id: n.id });
  assert.deepEqual(await get('tree.nodeOf', { objectId: (await evaluate('({})')).result.objectId }), { id: 0 });
  await get('tree.inspected', { id: n.id });
  const cl = code => evaluate(code, { includeCommandLineAPI: true, objectGroup: 'console' });
  assert.equal((await cl('$0.items.length')).result.value, 2);
  assert.equal((await cl('$_ + 1')).result.value, 3);
  assert.deepEqual((await evaluate('typeof $0')).result.value, 'undefined');
  assert.equal((await cl('keys({ a: 1 })[0]')).result.value, 'a');
  await cl('copy("text")');
  assert.deepEqual(sent.at(-2), { type: 'event', session: 's', event: 'runtime.inspectRequested', data: { object: { type: 'string', value: 'text' }, hints: { copyToClipboard: true } } });
  tree.remove(n);
  assert.equal((await ask('tree.resolve', { id: n.id })).error.code, 'object-not-found');
  assert.deepEqual(await get('tree.nodeOf', { objectId: object.objectId }), { id: 0 });
});

test('what a page cannot do is refused by a sentence that says what can', async () => {
  const { ask } = setup();
  for (const method of ['debugger.setBreakpointByUrl', 'debugger.pause', 'runtime.queryObjects', 'runtime.terminateExecution']) {
    const { error } = await ask(method);
    assert.deepEqual([error.code, /natscope attach/.test(error.message)], ['unsupported', true], method);
  }
  for (const method of ['heap.takeHeapSnapshot', 'runtime.__proto__', 'runtime.nope']) assert.equal((await ask(method)).error.code, 'unsupported', method);
  assert.equal((await ask('runtime.evaluate', { expression: 5 })).error.code, 'malformed');
  assert.equal((await ask('runtime.evaluate', { expression: '1', contextId: 7 })).error.code, 'object-not-found');
});

test('arguments of calls: values, handles and what JSON cannot hold', async () => {
  const { evaluate, get, ask } = setup();
  const { objectId } = (await evaluate('({ n: 1 })')).result;
  const { result } = await get('runtime.callFunctionOn', { functionDeclaration: '(...a) => a.map(x => typeof x === "object" ? x.n : String(x)).join()', arguments: [{ value: 1 }, {}, { objectId }, { unserializableValue: '-0' }, { unserializableValue: '12n' }, { unserializableValue: 'NaN' }] });
  assert.equal(result.value, '1,undefined,1,0,12,NaN');
  assert.equal((await ask('runtime.callFunctionOn', { functionDeclaration: 'f => f', arguments: [{ unserializableValue: 'x' }] })).error.code, 'malformed');
  assert.match((await get('runtime.callFunctionOn', { functionDeclaration: 'function (' })).exceptionDetails.exception.description, /^SyntaxError/);
  const promise = await get('runtime.callFunctionOn', { objectId, functionDeclaration: 'async function () { return this }' });
  assert.equal((await get('runtime.awaitPromise', { promiseObjectId: promise.result.objectId, returnByValue: true })).result.value.n, 1);
});

test('long answers go in parts that join to the whole', () => {
  const answer = JSON.stringify({ ok: true, result: { text: 'ä😀"\\'.repeat(100000) } });
  const parts = [...answerParts(7, answer)].map(t => JSON.parse(t));
  assert.ok(parts.length > 2 && parts.every((p, i) => p.id === 7 && p.part === i + 1 && p.of === parts.length && Buffer.byteLength(JSON.stringify(p)) < 1 << 20));
  assert.equal(parts.map(p => p.text).join(''), answer);
  assert.deepEqual(JSON.parse([...answerParts(1, '{"ok":true}')][0]), { type: 'answer', id: 1, ok: true });
});
