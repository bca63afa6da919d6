import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

const home = fileURLToPath(new URL('../', import.meta.url));
const compiler = join(home, 'node_modules/typescript/bin/tsc');

/** Runs the compiler; returns what it complained about. */
function tsc(cwd, ...args) {
  try {
    execFileSync(process.execPath, [compiler, ...args], { cwd, encoding: 'utf8' });
    return '';
  } catch (e) {
    return e.stdout || e.message;
  }
}

// Every line under ts-expect-error must be an error: types that are any would allow it.
const CONSUMER = `
import { start } from 'natscope';
import { start as startNode } from 'natscope/node';
import * as plugin from 'natscope/plugin';

const natscope = start({ url: 'ws://127.0.0.1:9230/ingest', token: 't', name: 'Shop', network: false });
let count = 1;
const app = natscope.component('App', { count }, undefined, {
  element: document.body,
  set: { count: v => { count = Number(v); } },
});
const item = natscope.component('Item', { sku: 'tea' }, app);
item.update({ sku: 'coffee' });
item.remove();
natscope.reveal(app);
const state: string = natscope.status().state;
const lost: number = natscope.status().lost;
natscope.stop();
startNode({ url: 'ws://127.0.0.1:9230/ingest', token: 't' }).stop();
const name: string = plugin.name;
export { state, lost, name };

// @ts-expect-error a token is needed
start({ url: 'ws://127.0.0.1:9230/ingest' });
// @ts-expect-error a component has a name
natscope.component();
// @ts-expect-error there is no such method
natscope.destroy();
// @ts-expect-error it is a number
const wrong: string = natscope.status().lost;
export { wrong };
`;

test('a TypeScript program compiles against the declarations that are published', t => {
  const dir = mkdtempSync(join(tmpdir(), 'natscope-types-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const pkg = join(dir, 'node_modules/natscope');
  mkdirSync(pkg, { recursive: true });
  assert.equal(tsc(home, '-p', 'tsconfig.types.json', '--outDir', join(pkg, 'types')), '');
  // As npm would install it: the modules, and the declarations beside them.
  for (const f of ['package.json', 'client.js', 'plugin.js', 'shared', 'browser', 'node']) cpSync(join(home, f), join(pkg, f), { recursive: true });
  mkdirSync(join(dir, 'node_modules/@types'));
  symlinkSync(join(home, 'node_modules/@types/node'), join(dir, 'node_modules/@types/node'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  writeFileSync(join(dir, 'consumer.ts'), CONSUMER);
  for (const [module, resolution] of [['esnext', 'bundler'], ['nodenext', 'nodenext']]) {
    const said = tsc(dir, '--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2023,dom,dom.iterable,dom.asynciterable', '--types', 'node', '--module', module, '--moduleResolution', resolution, 'consumer.ts');
    assert.equal(said, '', resolution);
  }
});
