/**
 * natscope's page client. One line in a page starts it:
 *
 *   <script type="module" src="http://127.0.0.1:9230/client.js?token=TOKEN"></script>
 *
 * The query may also carry name (shown in place of the title), id (to prefer
 * over the remembered one), console=off and fetch=off. A program that imports
 * this module without a token calls start itself.
 */
import { start } from './browser/start.js';

export { start };

const here = new URL(import.meta.url);
const token = here.searchParams.get('token');

if (token !== null) {
  try {
    start({
      url: ingestURL(here),
      token,
      name: here.searchParams.get('name') ?? undefined,
      id: here.searchParams.get('id') ?? undefined,
      console: here.searchParams.get('console') !== 'off',
      fetch: here.searchParams.get('fetch') !== 'off',
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
