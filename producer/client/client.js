/**
 * natscope's page client. One line in a page starts it:
 *
 *   <script type="module" src="http://127.0.0.1:9230/client.js?token=TOKEN"></script>
 *
 * The query may also carry name (shown in place of the title), id (to prefer
 * over the remembered one), console, network, fetch, resources or components as
 * off, and redact as secrets or as rules in JSON; so may attributes of the line,
 * as data-name="Shop". A program that imports this module without a token calls
 * start itself.
 */
import { start } from './browser/start.js';

export { start };

const here = new URL(import.meta.url);
const token = here.searchParams.get('token');

if (token !== null) {
  try {
    const line = [...document.scripts].find(s => sameModule(s.src));
    /** @type {(name: string) => string | undefined} */
    const option = name => here.searchParams.get(name) ?? line?.dataset[name];
    const on = (/** @type {string} */ name) => option(name) !== 'off';
    const redact = option('redact');
    start({
      url: ingestURL(here),
      token,
      name: option('name'),
      id: option('id'),
      console: on('console'), network: on('network'), fetch: on('fetch'), resources: on('resources'), components: on('components'),
      redact: redact?.startsWith('{') ? JSON.parse(redact) : /** @type {'secrets' | undefined} */ (redact),
    });
  } catch (e) {
    // A page must not notice that natscope could not start; whoever reads its console should.
    console.warn(`natscope: this page is not inspected: ${e instanceof Error ? e.message : e}`);
  }
}

/**
 * Whether a script line led here: the server sends it on to this folder, with its query.
 * @param {string} src
 * @returns {boolean}
 */
function sameModule(src) {
  return src !== '' && src.endsWith(`/client.js${here.search}`) && new URL(src).origin === here.origin;
}

/**
 * The ingest is beside the folder that this module was served from.
 * @param {URL} module
 * @returns {string}
 */
function ingestURL(module) {
  const url = new URL('../ingest', module);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.search = '';
  return url.href;
}
