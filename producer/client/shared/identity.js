/**
 * The id of a page survives its reload and belongs to one page at a time. It
 * lies in the tab's sessionStorage, which a copied tab inherits, so a page also
 * claims it by a Web Lock: who does not get the lock is a copy and takes a new
 * id. Without Web Locks the server tells copies apart; without storage the id
 * lives as long as the page.
 *
 * @typedef {object} Ground
 * @property {(() => string | null) | undefined} load reads the remembered id; may throw
 * @property {((id: string) => void) | undefined} save remembers an id; may throw
 * @property {((name: string) => Promise<(() => void) | undefined>) | undefined} lock
 *   claims a name and resolves to its release, or to undefined when another page has it
 * @property {(ms: number) => Promise<void>} wait
 */

/** @typedef {{id: string, release: () => void}} Claim */

/** How often, and how far apart in milliseconds, a remembered id is tried: a reload may overtake the page that it replaces. */
const TRIES = 3;
const PAUSE = 80;

/**
 * Claims the remembered id, or a fresh one. A wanted id is asked for even when
 * another page has it: the server then gives it a number, which a reload keeps.
 * It never rejects.
 * @param {Ground} ground
 * @param {string} [wanted]
 * @returns {Promise<Claim>}
 */
export async function claimIdentity(ground, wanted) {
  const stored = attempt(() => ground.load?.()) ?? undefined;
  const remembered = wanted === undefined || stored?.startsWith(`${wanted}-`) ? stored : wanted;
  if (remembered && (isID(remembered) || remembered === wanted)) {
    for (let i = 0; i < TRIES; i++) {
      const release = await claim(ground, remembered);
      if (release) return { id: remembered, release };
      if (i + 1 < TRIES) await ground.wait(PAUSE);
    }
  }
  if (wanted) return { id: wanted, release: () => {} };
  const id = freshID();
  remember(ground, id);
  return { id, release: await claim(ground, id) ?? (() => {}) };
}

/**
 * Remembers the id that the page has.
 * @param {Ground} ground
 * @param {string} id
 */
export function remember(ground, id) {
  attempt(() => ground.save?.(id));
}

/**
 * @returns {string} a fresh id, a token
 */
export function freshID() {
  return `page-${randomText(10)}`;
}

/**
 * @param {number} n
 * @returns {string} n random letters and digits, each worth 5 bits
 */
export function randomText(n) {
  const bytes = crypto.getRandomValues(new Uint8Array(n));
  return Array.from(bytes, b => '0123456789abcdefghjkmnpqrstvwxyz'[b & 31]).join('');
}

/**
 * @param {Ground} ground
 * @param {string} id
 * @returns {Promise<(() => void) | undefined>} undefined when another page has the id
 */
async function claim(ground, id) {
  if (!ground.lock) return () => {};
  try {
    return await ground.lock(`natscope:${id}`);
  } catch {
    // Opaque origins and some settings refuse locks; then it is as without them.
    return () => {};
  }
}

/**
 * @param {string} s
 * @returns {boolean}
 */
function isID(s) {
  return /^[a-z0-9_-]{1,64}$/.test(s);
}

/**
 * @template T
 * @param {() => T} f
 * @returns {T | undefined}
 */
function attempt(f) {
  try {
    return f();
  } catch {
    return undefined;
  }
}
