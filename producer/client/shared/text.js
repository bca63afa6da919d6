/**
 * Texts that become part of JSON: bounded, and without half surrogate pairs.
 */

/**
 * @param {string} s
 * @param {number} limit
 * @returns {string}
 */
export function quote(s, limit) {
  return JSON.stringify(ellipsis(s, limit));
}

/**
 * @param {string} s
 * @param {number} limit
 * @returns {string}
 */
export function oneLine(s, limit) {
  return ellipsis(s, limit).replace(/\r\n|\n|\r/g, ' ');
}

/**
 * Cuts a text to a number of characters, the last of which is then "…".
 * @param {string} s
 * @param {number} limit
 * @returns {string}
 */
export function ellipsis(s, limit) {
  if (s.length <= limit) return wellFormed(s);
  const chars = Array.from(s.slice(0, 2 * limit + 2));
  return chars.length <= limit ? wellFormed(s) : wellFormed(chars.slice(0, limit - 1).join('')) + '…';
}

/**
 * Cuts a text to a number of UTF-16 units without splitting a pair.
 * @param {string} s
 * @param {number} limit
 * @returns {string}
 */
export function cut(s, limit) {
  if (s.length <= limit) return wellFormed(s);
  const last = s.charCodeAt(limit - 1);
  return wellFormed(s.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit));
}

/**
 * Replaces lone surrogates, which UTF-8 cannot hold.
 * @param {string} s
 * @returns {string}
 */
export function wellFormed(s) {
  return /[\ud800-\udfff]/.test(s) ? s.replace(/[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]/g, m => m.length === 2 ? m : '\ufffd') : s;
}
