/**
 * Writes what a page needs to run the application in this folder as Svelte's
 * development build, as JSON: modules by their path, and an import map.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { compile } from 'svelte/compiler';

const folder = new URL('.', import.meta.url);
const { resolve } = createRequire(import.meta.url);
/** @type {Record<string, string>} */
const modules = {};
for (const name of readdirSync(folder)) {
  if (!name.endsWith('.svelte')) continue;
  const text = readFileSync(new URL(name, folder), 'utf8');
  modules[`/src/${name}`] = compile(text, { filename: `src/${name}`, dev: true, generate: 'client' }).js.code;
}
modules['/src/main.js'] = `import { mount } from 'svelte';
import App from './App.svelte';
import Bare from './Bare.svelte';
mount(App, { target: document.querySelector('#app') });
for (const target of document.querySelectorAll('.island')) mount(Bare, { target });
`;

const root = dirname(dirname(resolve('svelte/package.json')));
const { exports, imports } = JSON.parse(readFileSync(`${root}/svelte/package.json`, 'utf8'));
/** @type {Record<string, string>} */
const map = { clsx: '/modules/clsx/dist/clsx.mjs', 'esm-env': '/modules/esm-env/index.js' };
for (const name of ['browser', 'node']) map[`esm-env/${name}`] = `/modules/esm-env/${name === 'browser'}.js`;
map['esm-env/development'] = '/modules/esm-env/true.js';
for (const [name, target] of Object.entries({ ...exports, ...imports })) {
  const file = typeof target === 'string' ? target : target.browser ?? target.default;
  if (typeof file === 'string' && file.endsWith('.js')) map[name.startsWith('#') ? name : `svelte${name.slice(1)}`] = `/modules/svelte/${file.slice(2)}`;
}
process.stdout.write(JSON.stringify({ root, modules, map }));
