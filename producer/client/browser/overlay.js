/** How thick the frame is, in CSS pixels. */
const FRAME = 1;

/**
 * What the page's own styles cannot change: in a shadow root, what is important
 * wins over all that is outside. A sheet that is made by hand is no style that a
 * content policy forbids.
 */
const HOST = `:host {
  all: initial !important; direction: ltr !important; position: fixed !important; inset: 0 !important; display: block !important;
  width: auto !important; height: auto !important; overflow: visible !important; pointer-events: none !important; z-index: 2147483647 !important;
}
:host::backdrop { display: none !important; }`;

/**
 * A box over elements of the page, with a name and a size. It lies in a shadow
 * root, takes no pointer events and follows the elements. Only while it is shown
 * is anything of it in the page.
 * @returns {import('../shared/commands.js').Overlay}
 */
export function overlay() {
  /** @type {{host: HTMLElement, box: HTMLElement, label: HTMLElement} | undefined} */
  let parts;
  /** @type {Element[]} */
  let elements = [];
  let name = '';
  let frame = 0;
  const follow = () => {
    if (!parts) return;
    place(parts, elements, name);
    frame = requestAnimationFrame(follow);
  };
  return {
    show(list, text) {
      elements = /** @type {Element[]} */ (list);
      name = text;
      parts ??= build();
      // A page may have taken it out, as by replacing its whole body.
      if (!parts.host.isConnected) attach(parts.host);
      cancelAnimationFrame(frame);
      follow();
    },
    hide() {
      cancelAnimationFrame(frame);
      parts?.host.remove();
      parts = undefined;
      elements = [];
    },
  };
}

function build() {
  const host = document.createElement('natscope-overlay');
  const root = host.attachShadow({ mode: 'open' });
  const box = root.appendChild(document.createElement('div'));
  const label = root.appendChild(document.createElement('div'));
  // Style objects are not what a page's content policy forbids; style attributes are.
  Object.assign(host.style, { all: 'initial', position: 'fixed', inset: '0', display: 'block', width: 'auto', height: 'auto', pointerEvents: 'none', zIndex: '2147483647', background: 'none', overflow: 'visible' });
  Object.assign(box.style, { position: 'fixed', boxSizing: 'border-box', border: `${FRAME}px solid #1a73e8`, background: 'rgba(111, 168, 220, 0.35)', pointerEvents: 'none' });
  Object.assign(label.style, { position: 'fixed', padding: '2px 6px', font: '12px/16px system-ui, sans-serif', color: '#fff', background: '#1f2937', borderRadius: '3px', whiteSpace: 'pre', maxWidth: '90vw', overflow: 'hidden', textOverflow: 'ellipsis', pointerEvents: 'none' });
  host.setAttribute('aria-hidden', 'true');
  try {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(HOST);
    root.adoptedStyleSheets = [sheet];
  } catch {
    // The page's styles reach the host, then.
  }
  attach(host);
  return { host, box, label };
}

/** @param {HTMLElement} host */
function attach(host) {
  document.documentElement.append(host);
  try {
    // Above dialogs of the page, where the browser can do that.
    host.popover = 'manual';
    host.showPopover();
  } catch {
    // Then it is below them.
  }
}

/**
 * @param {{box: HTMLElement, label: HTMLElement}} parts
 * @param {Element[]} elements
 * @param {string} name
 */
function place({ box, label }, elements, name) {
  const r = union(elements);
  const shown = r !== undefined;
  box.style.display = label.style.display = shown ? 'block' : 'none';
  if (!shown) return;
  Object.assign(box.style, { left: `${r.left}px`, top: `${r.top}px`, width: `${r.right - r.left}px`, height: `${r.bottom - r.top}px` });
  const text = `${name}  ${size(r.right - r.left)} × ${size(r.bottom - r.top)}`;
  if (label.textContent !== text) label.textContent = text;
  const height = label.offsetHeight;
  const above = r.top - height - 4;
  const top = above >= 0 ? above : Math.min(r.bottom + 4, innerHeight - height - 4);
  const left = Math.max(4, Math.min(r.left, innerWidth - label.offsetWidth - 4));
  Object.assign(label.style, { left: `${left}px`, top: `${Math.max(4, top)}px` });
}

/**
 * @param {Element[]} elements
 * @returns {{left: number, top: number, right: number, bottom: number} | undefined} undefined when none is in the page
 */
function union(elements) {
  let out;
  for (const e of elements) {
    if (!e.isConnected) continue;
    const r = e.getBoundingClientRect();
    out = out === undefined ? { left: r.left, top: r.top, right: r.right, bottom: r.bottom } : {
      left: Math.min(out.left, r.left), top: Math.min(out.top, r.top), right: Math.max(out.right, r.right), bottom: Math.max(out.bottom, r.bottom),
    };
  }
  return out;
}

/**
 * @param {number} n
 * @returns {string} a length with two decimals at most
 */
function size(n) {
  return String(Math.round(n * 100) / 100);
}
