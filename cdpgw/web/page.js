// The page of sources: it asks for sources.json while it is seen, and changes the
// rows that changed. Everything that sources say of themselves goes in as text.

const $ = (/** @type {string} */ id) => document.getElementById(id);
const rows = new Map(); // by id: {row, detail, data, rates, last}
let open = null; // the id whose history is shown
let frontend = false;
let tag = '';
let fails = 0;

/** make builds an element: attributes by name, children as elements or text. */
function make(name, attrs = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attrs)) {
    if (k === 'onclick') e.onclick = v;
    else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? '' : v);
  }
  e.append(...children);
  return e;
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure context there is only the old way.
    const field = make('textarea', { style: 'position:fixed;opacity:0' });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  if (button) {
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  }
}

/** spark draws the rates of the last minute. */
function spark(rates) {
  const ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('width', '60');
  svg.setAttribute('height', '16');
  svg.setAttribute('aria-hidden', 'true');
  const top = Math.max(1, ...rates);
  const path = document.createElementNS(ns, 'path');
  path.setAttribute('d', rates.map((r, i) => `${i ? 'L' : 'M'}${60 - rates.length + i + 0.5} ${(15 - 14 * r / top).toFixed(1)}`).join(''));
  svg.append(path);
  return svg;
}

const count = (n) => n < 10 && n % 1 ? n.toFixed(1) : Math.round(n).toLocaleString('en');

/** rate notes how many records came since the last answer. */
function rate(x, s, at) {
  if (x.last && s.generation === x.last.generation && at > x.last.at) {
    x.rates.push(Math.max(0, (s.records - x.last.records) * 1000 / (at - x.last.at)));
    if (x.rates.length > 60) x.rates.shift();
  }
  x.last = { records: s.records, generation: s.generation, at };
}

function fill(x, s) {
  const lost = s.lost ? make('span', { class: 'bad', title: 'records that were dropped before they could be stored' }, ` ${count(s.lost)} lost`) : '';
  const now = x.rates.at(-1) ?? 0;
  const button = make('button', { type: 'button', tabindex: -1, onclick: () => copy(s.link, button) }, 'Copy');
  x.row.className = s.connected ? 'row' : 'row gone';
  x.row.setAttribute('aria-label', `${s.name}, ${s.connected ? 'connected' : 'disconnected'}`);
  x.row.replaceChildren(
    make('td', {}, make('span', { class: 'dot' }), make('span', { class: 'name' }, s.name), make('div', { class: 'sub' }, `${s.id}${s.connected ? '' : ' · disconnected'}`)),
    make('td', {}, [s.kind, s.runtime].filter(Boolean).join(' · '), make('div', { class: 'sub' }, [s.title, s.url].filter(Boolean).join(' · '))),
    make('td', { class: 'num' }, spark(x.rates), s.connected ? count(now) : '–', lost),
    make('td', { class: 'num' }, count(s.nodes)),
    make('td', { class: 'num' }, count(s.requests)),
    make('td', { class: 'num' }, count(s.messages)),
    make('td', { class: s.faults ? 'num bad' : 'num' }, count(s.faults ?? 0)),
    make('td', { class: 'acts' }, button, frontend ? make('a', { class: 'open', tabindex: -1, href: s.open, target: '_blank', rel: 'noopener' }, 'Open') : '',
      make('button', { type: 'button', tabindex: -1, 'aria-expanded': String(open === s.id), onclick: () => toggle(s.id) }, 'History')),
  );
}

function show(answer, at) {
  document.title = `natscope · ${answer.space}`;
  $('space').textContent = `space ${answer.space}`;
  $('version').textContent = `natscope ${answer.version}`;
  frontend = !!answer.frontend;
  $('hint').hidden = frontend;
  const all = $('all');
  all.querySelector('input').value = answer.link;
  all.querySelector('.copy').onclick = (e) => copy(answer.link, e.target);
  const link = all.querySelector('.open');
  link.hidden = !frontend;
  link.href = answer.open ?? '';
  const live = answer.sources.filter((s) => s.connected).length;
  $('state').className = answer.waiting ? 'warn' : '';
  $('state').textContent = answer.waiting ? `What you see may be old: this gateway waits for ${answer.waiting}.` : `${live} of ${answer.sources.length} connected${answer.role === 'view' ? ' · you may look only' : ''}`;
  const seen = new Set();
  let before = null;
  for (const s of answer.sources) {
    seen.add(s.id);
    let x = rows.get(s.id);
    if (!x) {
      x = { row: make('tr', { tabindex: 0, 'data-id': s.id }), detail: null, data: '', rates: [], last: null };
      rows.set(s.id, x);
    }
    rate(x, s, at);
    const key = JSON.stringify([s, x.rates.at(-1), open === s.id, frontend]);
    if (key !== x.data || x.rates.some((r) => r > 0)) {
      x.data = key;
      fill(x, s);
    }
    x.source = s;
    if (!x.row.isConnected || x.row.previousElementSibling !== before) (before ? before.after(x.row) : $('sources').prepend(x.row));
    before = x.row;
    if (x.detail) {
      x.row.after(x.detail);
      before = x.detail;
    }
  }
  for (const [id, x] of rows) {
    if (!seen.has(id)) {
      x.row.remove();
      x.detail?.remove();
      rows.delete(id);
    }
  }
  filter();
}

/** filter hides what does not have all words of the filter. */
function filter() {
  const words = $('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const x of rows.values()) {
    const s = x.source;
    const text = [s.name, s.id, s.kind, s.runtime, s.title, s.url, s.connected ? 'connected' : 'disconnected', s.faults ? 'faults' : ''].join(' ').toLowerCase();
    const hidden = !words.every((w) => text.includes(w));
    x.row.hidden = hidden;
    if (x.detail) x.detail.hidden = hidden;
    if (!hidden) shown++;
  }
  $('none').hidden = shown > 0;
  $('none').textContent = rows.size ? 'No source has these words.' : 'No source yet. Link a producer into a Go program, load the client script into a page, or start natscope up --demo. Sources appear here by themselves.';
}

async function toggle(id) {
  const before = open;
  open = before === id ? null : id;
  for (const i of [before, id]) {
    const x = rows.get(i);
    if (!x) continue;
    if (i !== open) {
      x.detail?.remove();
      x.detail = null;
    }
    fill(x, x.source);
  }
  if (open) await history();
}

const clock = (t) => t ? new Date(t).toLocaleTimeString('en-GB') + '.' + String(Math.floor(t % 1000)).padStart(3, '0') : '';

/** change tells one change of a commit in words. */
function change(c) {
  const what = { add: 'added', update: 'changed', remove: 'removed', move: 'moved' }[c.op] ?? c.op;
  const out = make('div', {}, make('code', {}, `<${c.name}>`), ` ${c.symbol ? c.symbol + ' ' : ''}${what}`);
  if (c.nodes > 1) out.append(` (${count(c.nodes)} nodes)`);
  if (c.from !== undefined) out.append(' ', make('del', {}, make('code', {}, c.from)));
  if (c.to !== undefined) out.append(c.from !== undefined ? ' → ' : ' ', make('ins', {}, make('code', {}, c.to)));
  return out;
}

/** history fetches and shows the timeline of the open source. */
async function history() {
  const id = open;
  const x = rows.get(id);
  if (!x) return;
  let h;
  try {
    const r = await fetch('history.json?source=' + encodeURIComponent(id), { cache: 'no-store' });
    if (!r.ok) throw new Error(await r.text());
    h = await r.json();
  } catch (e) {
    h = { error: String(e.message), commits: [], faults: [] };
  }
  if (open !== id) return;
  const top = x.detail?.querySelector('ol')?.scrollTop ?? 0;
  const cell = make('td', { class: 'detail', colspan: 8 });
  if (h.error) cell.append(make('p', { class: 'bad' }, h.error));
  if (h.faults.length) {
    cell.append(make('h2', {}, `Faults${h.faultCount > h.faults.length ? `, the last ${h.faults.length} of ${count(h.faultCount)}` : ''}`),
      make('ol', { class: 'faults' }, ...h.faults.map((f) => make('li', {}, make('time', {}, clock(f.t)), make('span', { class: 'bad' }, f.text)))));
  }
  cell.append(make('h2', {}, h.commits.length ? `Changes of its tree${h.truncated ? ', the last ' + h.commits.length : ''}` : 'Its tree has not changed yet.'));
  if (h.commits.length) {
    cell.append(make('ol', {}, ...h.commits.map((c) => make('li', {}, make('time', {}, clock(c.t)), ...c.changes.map(change), c.more ? make('div', { class: 'sub' }, `and ${count(c.more)} more`) : ''))));
  }
  const detail = make('tr', { hidden: x.row.hidden }, cell);
  if (x.detail) x.detail.replaceWith(detail);
  else x.row.after(detail);
  x.detail = detail;
  const list = detail.querySelector('ol');
  if (list) list.scrollTop = top;
}

async function refresh() {
  try {
    const r = await fetch('sources.json', { headers: tag ? { 'If-None-Match': tag } : {}, cache: 'no-store' });
    if (r.status === 401 || r.status === 403) throw new Error(await r.text());
    if (r.status !== 304 && !r.ok) throw new Error(`the gateway answers ${r.status}`);
    fails = 0;
    tag = r.headers.get('ETag') ?? '';
    const answer = r.status === 304 ? null : await r.json();
    if (answer) refresh.last = answer;
    if (refresh.last) show(refresh.last, Date.now());
    if (open && answer) await history();
  } catch (e) {
    fails++;
    $('state').className = 'warn';
    $('state').textContent = e instanceof TypeError ? 'The gateway does not answer. What you see is what it said last.' : String(e.message);
  }
}

async function loop() {
  for (;;) {
    if (!document.hidden) await refresh();
    const wait = Math.min(1000 * (1 + Math.min(fails, 9)), 10000) + (rows.size > 200 ? 2000 : 0);
    await new Promise((done) => { setTimeout(done, wait); });
  }
}

$('filter').oninput = filter;
// When the key is up, so that the key itself is not typed into the field.
document.addEventListener('keyup', (e) => {
  if (e.key === '/' && !e.target.matches?.('input')) $('filter').focus();
});
document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target === $('filter');
  if (typing && e.key === 'Escape') {
    $('filter').value = '';
    filter();
    $('filter').blur();
    return;
  }
  const shown = [...rows.values()].map((x) => x.row).filter((r) => !r.hidden).sort((a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
  const at = shown.indexOf(document.activeElement?.closest?.('tr.row'));
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
    shown[Math.min(Math.max(at + (e.key === 'ArrowDown' ? 1 : -1), 0), shown.length - 1)]?.focus();
    e.preventDefault();
    return;
  }
  if (typing || e.target.matches?.('input, button, a')) return;
  const x = at >= 0 ? rows.get(shown[at].dataset.id) : null;
  if (!x) return;
  if (e.key === 'Enter') toggle(x.source.id);
  else if (e.key === 'c') copy(x.source.link, x.row.querySelector('button'));
  else if (e.key === 'o' && frontend) window.open(x.source.open, '_blank', 'noopener');
});
loop();
