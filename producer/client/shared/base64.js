/**
 * @param {Uint8Array} bytes
 * @returns {string} the bytes in base64
 */
export function toBase64(bytes) {
  const native = /** @type {any} */ (bytes).toBase64;
  if (typeof native === 'function') return native.call(bytes);
  let text = '';
  // String.fromCharCode takes its characters as arguments, of which engines bound the number.
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}
