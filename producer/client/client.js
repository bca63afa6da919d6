/**
 * natscope's page client. One line in a page starts it:
 *
 *   <script type="module" src="http://127.0.0.1:9230/client.js?token=TOKEN"></script>
 *
 * The query may also carry name (shown in place of the title), id (to prefer
 * over the remembered one), and console, network, fetch or resources as off. A
 * program that imports this module without a token calls start itself.
 */
import { start } from './browser/start.js';

export { start };

const here = new URL(import.meta.url);
const on = (/** @type {string} */ name) => here.searchParams.get(name) !== 'off';
const token = here.searchParams.get('token');

if (token !== null) {
  try {
    start({
      url: ingestURL(here),
      token,
      name: here.searchParams.get('name') ?? undefined,
      id: here.searchParams.get('id') ?? undefined,
      console: on('console'), network: on('network'), fetch: on('fetch'), resources: on('resources'), components: on('components'),
    });
  } catch {
    // A page must not notice that natscope could not start.
  }
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
