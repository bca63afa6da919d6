import assert from 'node:assert/strict';
import test from 'node:test';
import { cleanStack, parseStack } from '../shared/stack.js';

const HOME = new URL('../', import.meta.url).href;
const places = stack => parseStack(stack).map(f => `${f.function}@${f.url}:${f.line}:${f.column}`);

test('V8: Chrome, Edge, Node', () => {
  assert.deepEqual(places(`Error: at first (sight) it is a frame
    at inner (http://a.test/app.js:10:5)
    at async Promise.all (index 0)
    at new Cart (http://a.test/cart.js:1:2)
    at async load (http://[::1]:8080/load.js:2:3)
    at http://a.test/main.js?v=1:33:7
    at Array.map (<anonymous>)
    at Object.get total [as total] (http://a.test/(shop)/x.js:4:5)
    at eval (eval at run (http://a.test/eval.js:7:8), <anonymous>:1:2)
    at eval (webpack-internal:///./src/App.vue:12:34)
    at wasm://wasm/0012abcd:wasm-function[3]:0x1f
    at chrome-extension://abc/content.js:5:6
    at node:internal/main:9:1
    at /home/x/z.cjs:6:7
    at file:///home/x/y.mjs:3:4`), [
    'inner@http://a.test/app.js:10:5', 'Cart@http://a.test/cart.js:1:2', 'load@http://[::1]:8080/load.js:2:3', '@http://a.test/main.js?v=1:33:7',
    'Object.get total [as total]@http://a.test/(shop)/x.js:4:5', 'eval@http://a.test/eval.js:7:8', 'eval@webpack-internal:///./src/App.vue:12:34',
    '@chrome-extension://abc/content.js:5:6', '@node:internal/main:9:1', '@/home/x/z.cjs:6:7', '@file:///home/x/y.mjs:3:4',
  ]);
});

test('SpiderMonkey: Firefox', () => {
  assert.deepEqual(places(`inner@http://a.test/app.js:10:5
ready/<@http://a.test/app.js:12:21
async*outer@http://a.test/x.js:3:4
setTimeout handler*late@http://[::1]:8080/t.js:5:6
get total@http://a.test/(shop)/x.js:4:5
run@http://a.test/eval.js line 7 > eval:1:2
anonymous@http://a.test/fn.js line 8 > Function:3:4
@http://a.test/main.js?to=a@b.test:33:7
@debugger eval code:1:1
handleEvent@resource://gre/modules/X.sys.mjs:1:2
@moz-extension://abc/content.js:5:6
`), [
    'inner@http://a.test/app.js:10:5', 'ready/<@http://a.test/app.js:12:21', 'outer@http://a.test/x.js:3:4', 'late@http://[::1]:8080/t.js:5:6',
    'get total@http://a.test/(shop)/x.js:4:5', 'run@http://a.test/eval.js:7:1', 'anonymous@http://a.test/fn.js:8:1', '@http://a.test/main.js?to=a@b.test:33:7',
    'handleEvent@resource://gre/modules/X.sys.mjs:1:2', '@moz-extension://abc/content.js:5:6',
  ]);
});

test('JavaScriptCore: Safari', () => {
  assert.deepEqual(places(`inner@http://a.test/app.js:10:5
map@[native code]
async load@http://a.test/load.js:2:3
@http://a.test/main.js:33:7
global code@http://a.test/page.html:3:9
module code@http://a.test/m.js:1:1
eval code@
[native code]
total@http://a.test/@scope/x.js:4:5
asyncFunctionResume@[native code]
promiseReactionJob@[native code]`), [
    'inner@http://a.test/app.js:10:5', 'load@http://a.test/load.js:2:3', '@http://a.test/main.js:33:7', '@http://a.test/page.html:3:9', '@http://a.test/m.js:1:1',
    'total@http://a.test/@scope/x.js:4:5',
  ]);
});

test('our own frames are left out, by both addresses of the entry, and texts that are no stacks are none', () => {
  const lines = [`f@http://a.test/x.js:1:2`, `launch@${HOME}shared/api.js:3:4`, `@${HOME}client.js?token=secret:5:6`, `@${new URL('../client.js', HOME).href}?token=secret:7:8`];
  assert.deepEqual(places(lines.join('\n')), ['f@http://a.test/x.js:1:2']);
  assert.equal(cleanStack(lines.join('\n')), lines[0]);
  assert.deepEqual(places(`Error\n    at f (http://a.test/x.js:1:2)\n    at launch (${HOME}shared/api.js:3:4)`), ['f@http://a.test/x.js:1:2']);
  for (const odd of [undefined, null, 5, '', 'x', ' at :::', 'a'.repeat(1e5), '@:1:1', `${'('.repeat(5000)}:1:1`, ' at '.repeat(20000)]) assert.deepEqual(parseStack(odd), []);
  assert.equal(parseStack('f@http://a.test/x.js:1:2\n'.repeat(1000)).length, 50);
});
