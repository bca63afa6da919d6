/**
 * Asks the page's own development server to open a file. Vite and others
 * answer under this path; a server that does not know it says so, or sends the
 * page itself.
 * @param {string} loc a file, or file:line
 * @param {typeof fetch} request the page's fetch as it was before it was captured
 * @returns {Promise<boolean>} whether the server took it
 */
export async function openInEditor(loc, request) {
  const url = new URL('/__open-in-editor', location.origin);
  url.searchParams.set('file', loc);
  try {
    const response = await request(url, { cache: 'no-store', credentials: 'same-origin', signal: AbortSignal.timeout(10000) });
    const page = (response.headers.get('content-type') ?? '').includes('text/html');
    await response.body?.cancel();
    return response.ok && !page;
  } catch {
    return false;
  }
}
