/** Under this key the page's id lies in sessionStorage. */
const KEY = 'natscope:id';

/**
 * What the page's identity stands on: the tab's storage and Web Locks, as far as the page has them.
 * @returns {import('../shared/identity.js').Ground}
 */
export function ground() {
  const locks = attempt(() => navigator.locks);
  return {
    load: () => sessionStorage.getItem(KEY),
    save: id => sessionStorage.setItem(KEY, id),
    lock: locks ? name => claim(locks, name) : undefined,
    wait: ms => new Promise(resolve => setTimeout(resolve, ms)),
  };
}

/**
 * Claims a lock for as long as the page lives, or until it is released.
 * @param {LockManager} locks
 * @param {string} name
 * @returns {Promise<(() => void) | undefined>}
 */
function claim(locks, name) {
  return new Promise((resolve, reject) => {
    locks.request(name, { ifAvailable: true }, lock => {
      if (!lock) {
        resolve(undefined);
        return undefined;
      }
      return new Promise(release => resolve(() => release(undefined)));
    }).catch(reject);
  });
}

/** @returns {string} the browser's name and version, as far as it tells */
export function runtime() {
  const ua = attempt(() => navigator.userAgent) ?? '';
  for (const [name, pattern] of /** @type {[string, RegExp][]} */ ([
    ['Edge', /Edg\/([\d.]+)/], ['Firefox', /Firefox\/([\d.]+)/], ['Chrome', /Chrome\/([\d.]+)/], ['Safari', /Version\/([\d.]+).*Safari/],
  ])) {
    const m = pattern.exec(ua);
    if (m) return `${name} ${m[1]}`;
  }
  return ua.slice(0, 200);
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
