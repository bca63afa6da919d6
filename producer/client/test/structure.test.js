import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import test from 'node:test';

const home = new URL('../', import.meta.url);
const list = dir => readdirSync(new URL(dir, home)).filter(f => f.endsWith('.js')).sort();
const source = name => readFileSync(new URL(name, home), 'utf8');

/** Code without comments and texts, so that only names are left. */
function code(name) {
  return source(name)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|[^:'"`])\/\/.*$/gm, '$1')
    .replace(/'(?:[^'\\\n]|\\.)*'/g, "''");
}

test('browser/ and node/ have the same files with the same exports', () => {
  assert.deepEqual(list('node/'), list('browser/'));
  const exports = name => [...source(name).matchAll(/^export (?:async )?(?:function|class|const) (\w+)/gm)].map(m => m[1]).sort();
  for (const f of list('browser/')) assert.deepEqual(exports(`node/${f}`), exports(`browser/${f}`), f);
});

const BROWSER_ONLY = ['window', 'document', 'location', 'history', 'navigator', 'sessionStorage', 'localStorage', 'WebSocket', 'requestAnimationFrame', 'MutationObserver', 'HTMLElement', 'addEventListener', 'XMLHttpRequest', 'indexedDB'];
const NODE_ONLY = ['process', 'Buffer', 'require', 'global', '__dirname', '__filename', 'setImmediate', 'module'];

test('shared/ uses neither browser-only nor Node-only names', () => {
  for (const f of list('shared/')) {
    const text = code(`shared/${f}`);
    for (const name of [...BROWSER_ONLY, ...NODE_ONLY]) {
      // A property or method of another object may have any name.
      const found = new RegExp(`(?<![\\w.$'"])${name}(?![\\w$]|\\s*:)`).exec(text);
      assert.equal(found, null, `shared/${f} uses ${name}`);
    }
    assert.equal(/from 'node:|import\('node:/.test(source(`shared/${f}`)), false, `shared/${f} imports from Node`);
  }
});

test('the scan would find something', () => {
  assert.match(code('browser/place.js'), /(?<![\w.$'"])document(?![\w$])/);
});

test('folders know only what they may', () => {
  for (const [dir, may] of [['shared/', /^\.\//], ['browser/', /^\.\/|^\.\.\/shared\//], ['node/', /^\.\/|^\.\.\/shared\/|^node:/], ['attached/', /^\.\/|^\.\.\/shared\/|^\.\.\/node\/|^node:/]]) {
    for (const f of list(dir)) {
      for (const [, from] of source(dir + f).matchAll(/(?:^import[^;]*? from|^export[^;]*? from|import\() ?'([^']+)'/gm)) {
        assert.match(from, may, `${dir}${f} imports ${from}`);
      }
    }
  }
});

test('nothing is left for later, and every module says what it is', () => {
  for (const f of ['client.js', ...['shared/', 'browser/', 'node/', 'attached/'].flatMap(d => list(d).map(n => d + n))]) {
    assert.equal(/TODO|FIXME|XXX/.test(source(f)), false, f);
    assert.match(source(f), /\/\*\*/, `${f} has no doc comment`);
    assert.ok(source(f).split('\n').length <= 500, `${f} is too long`);
  }
});
