/**
 * The encoding of one JavaScript value for people to look at: one level deep,
 * with markers for everything that JSON cannot hold. It is the same encoding as
 * Go's package subjects/value; the golden vectors bind the two.
 *
 * Looking must not run the page's code: accessors are named, never called.
 * Only a Proxy's traps run, since nothing tells a Proxy from its target.
 */

import { constructorName, count, first, functionName, getter, inherited, messageOf, ownData, property, errorStack, tryCall } from './read.js';
import { cleanStack } from './stack.js';
import { cut, ellipsis, oneLine, quote, wellFormed } from './text.js';

/** @typedef {import('./protocol.js').Json} Json */

/** The key that marks an object as a marker. */
export const TAG = '__natscope';

/** How many UTF-16 units of a string are kept. */
export const MAX_STRING = 10000;
/** How many entries of a container are kept. */
export const MAX_ENTRIES = 100;
/** How many characters the preview of a container has. */
export const MAX_PREVIEW = 100;
/** How many rows a table has, how many of them show what one costs, and how many columns a row has. */
const MAX_ROWS = 1000;
const SAMPLE_ROWS = 50;
const MAX_COLUMNS = 50;

const PREVIEW_STRING = 30;
/** Beyond this a bigint has more than about MAX_STRING digits: to write more out is time and memory of the page. */
const WIDEST = 1n << 33000n;
const PREVIEW_ENTRIES = 5;

const mapSize = getter(Map.prototype, 'size');
const setSize = getter(Set.prototype, 'size');
const mapEntries = Map.prototype.entries;
const setValues = Set.prototype.values;
const paramsEntries = URLSearchParams.prototype.entries;
const bufferLength = getter(ArrayBuffer.prototype, 'byteLength');
const typedName = getter(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);
const typedLength = getter(Object.getPrototypeOf(Uint8Array.prototype), 'length');
const dateTime = Date.prototype.getTime;

/**
 * Encodes a value. It never throws.
 * @param {unknown} v
 * @param {number} [most] how many entries of a wide container are kept
 * @returns {Json}
 */
export function encode(v, most = MAX_ENTRIES) {
  try {
    const simple = encodeSimple(v);
    if (simple !== undefined) return simple;
    return open(/** @type {object} */ (v)).encoded(most, encodeInner);
  } catch (e) {
    return { [TAG]: 'threw', message: messageOf(e) };
  }
}

/**
 * Encodes what is shown as a table, which is two levels deep: its rows have
 * their fields. It never throws.
 * @param {unknown} v
 * @param {number} size how many UTF-16 units of JSON it may have; rows beyond are only counted
 * @returns {Json}
 */
export function encodeTable(v, size) {
  const row = (/** @type {unknown} */ x) => isContainer(x) ? open(x).encoded(MAX_COLUMNS, encodeInner) : encodeInner(x);
  try {
    if (!isContainer(v)) return encode(v);
    const table = open(v);
    // A few rows tell how many there is room for.
    let out = table.encoded(SAMPLE_ROWS, row);
    let most = Math.min(MAX_ROWS, Math.floor(SAMPLE_ROWS * size / Math.max(1, JSON.stringify(out).length)));
    if (most < SAMPLE_ROWS || table.size > SAMPLE_ROWS) out = table.encoded(most, row);
    while (most > 1 && JSON.stringify(out).length > size) out = table.encoded(most >>= 1, row);
    return out;
  } catch (e) {
    return { [TAG]: 'threw', message: messageOf(e) };
  }
}

/**
 * @param {unknown} v
 * @returns {v is object}
 */
function isContainer(v) {
  return v !== null && typeof v === 'object' && encodeSimple(v) === undefined;
}

/**
 * Encodes a value as if it were below the first level: a container becomes a
 * dehydrated marker, a long string its first 1000 characters. It never throws.
 * @param {unknown} v
 * @returns {Json}
 */
export function encodeShort(v) {
  try {
    if (typeof v === 'string' && v.length > 1000) return cutString(v, 1000);
    return encodeInner(v);
  } catch (e) {
    return { [TAG]: 'threw', message: messageOf(e) };
  }
}

/**
 * Returns a readable text of one line for a value that is no container, and
 * undefined for one that is. Strings are not quoted; of a long one it is the
 * beginning, and how long it is.
 * @param {unknown} v
 * @returns {string | undefined}
 */
export function primitiveText(v) {
  if (typeof v === 'string') {
    const text = oneLine(wellFormed(v), MAX_PREVIEW);
    return v.length > MAX_PREVIEW && text.endsWith('…') ? `${text} (${v.length} characters)` : text;
  }
  if (v === null || typeof v !== 'object' && typeof v !== 'function') return title(v, MAX_PREVIEW);
  return undefined;
}

/**
 * @param {unknown} v
 * @returns {Json | undefined} undefined for containers
 */
function encodeSimple(v) {
  switch (typeof v) {
    case 'undefined': return { [TAG]: 'undefined' };
    case 'boolean': return v;
    case 'string': return v.length > MAX_STRING ? cutString(v, MAX_STRING) : wellFormed(v);
    case 'number':
      if (Object.is(v, -0)) return { [TAG]: 'number', value: '-0' };
      return Number.isFinite(v) ? v : { [TAG]: 'number', value: String(v) };
    case 'bigint':
      if (tooWide(v)) return { [TAG]: 'dehydrated', type: 'object', preview: 'BigInt', size: 0, opaque: true };
      return { [TAG]: 'bigint', value: v.toString() };
    case 'symbol': return { [TAG]: 'symbol', value: ellipsis(v.toString(), MAX_STRING) };
    case 'function': return { [TAG]: 'function', name: functionName(v) };
  }
  if (v === null) return null;
  if (v instanceof Date) {
    const time = tryCall(dateTime, v);
    if (time !== undefined) return { [TAG]: 'date', iso: Number.isNaN(time) ? null : new Date(time).toISOString() };
  }
  if (v instanceof RegExp && !(ownData(v, 'source') || ownData(v, 'flags'))) {
    return { [TAG]: 'regexp', source: ellipsis(v.source, MAX_STRING), flags: v.flags };
  }
  if (v instanceof Error) return encodeError(v);
  return undefined;
}

/**
 * @param {bigint} n
 * @returns {boolean}
 */
function tooWide(n) {
  return n > WIDEST || n < -WIDEST;
}

/**
 * @param {Error} e
 * @returns {Json}
 */
function encodeError(e) {
  /** @type {Record<string, Json>} */
  const out = { [TAG]: 'error', name: ellipsis(errorName(e), 1000), message: ellipsis(inherited(e, 'message') ?? '', MAX_STRING) };
  // Reading the stack formats it, which would call an accessor of these names.
  const quiet = inherited(e, 'message') !== undefined && inherited(e, 'name') !== undefined;
  const stack = quiet ? errorStack(e) : undefined;
  if (stack) out.stack = ellipsis(cleanStack(stack), MAX_STRING);
  return out;
}

/**
 * @param {object} e
 * @returns {string}
 */
function errorName(e) {
  return inherited(e, 'name') || constructorName(e) || 'Error';
}

/**
 * Encodes a value below the first level.
 * @param {unknown} v
 * @returns {Json}
 */
function encodeInner(v) {
  try {
    const simple = encodeSimple(v);
    if (simple !== undefined) return simple;
    const c = open(/** @type {object} */ (v));
    /** @type {Record<string, Json>} */
    const out = { [TAG]: 'dehydrated', type: c.type, preview: c.preview(), size: c.size };
    if (c.opaque) out.opaque = true;
    return out;
  } catch (e) {
    return { [TAG]: 'threw', message: messageOf(e) };
  }
}

/**
 * A container that is being looked at.
 * @typedef {object} Container
 * @property {string} type the type of its dehydrated marker
 * @property {number} size how many entries it has
 * @property {boolean} [opaque]
 * @property {string} title its name inside of another container's preview
 * @property {(most: number, inner: (v: unknown) => Json) => Json} encoded what is below is encoded by inner
 * @property {() => string} preview
 */

/**
 * @param {object} v
 * @returns {Container}
 */
function open(v) {
  if (Array.isArray(v)) return openArray(v);
  return openBinary(v) ?? openCollection(v) ?? openObject(v);
}

/**
 * @param {unknown[]} v
 * @returns {Container}
 */
function openArray(v) {
  const size = v.length;
  /** @param {number} n */
  const head = n => Array.from({ length: Math.min(n, size) }, (_, i) => property(v, String(i)));
  const name = `Array(${size})`;
  return {
    type: 'array', size, title: name,
    encoded: (most, inner) => partial(head(most).map(inner), size, most),
    preview: () => preview(name, '[', head(PREVIEW_ENTRIES).map(x => title(x, PREVIEW_STRING)), size, ']'),
  };
}

/**
 * @param {object} v
 * @returns {Container | undefined}
 */
function openBinary(v) {
  let type = 'typedarray';
  let name = '';
  /** @type {number | undefined} */
  let size;
  if (v instanceof ArrayBuffer) {
    size = tryCall(bufferLength, v);
    type = 'arraybuffer';
    name = 'ArrayBuffer';
  } else if (ArrayBuffer.isView(v)) {
    name = tryCall(typedName, v) ?? 'DataView';
    size = name === 'DataView' ? v.byteLength : tryCall(typedLength, v);
  }
  if (size === undefined) return undefined;
  const text = `${name}(${size})`;
  return {
    type, size, opaque: true, title: text,
    encoded: () => ({ [TAG]: 'dehydrated', type, preview: text, size, opaque: true }),
    preview: () => text,
  };
}

/**
 * @param {object} v
 * @returns {Container | undefined}
 */
function openCollection(v) {
  if (v instanceof Map) {
    const size = tryCall(mapSize, v);
    if (size !== undefined) return openEntries('map', 'Map', size, () => mapEntries.call(v));
  } else if (v instanceof Set) {
    const size = tryCall(setSize, v);
    if (size !== undefined) return openSet(size, () => setValues.call(v));
  } else if (v instanceof URLSearchParams) {
    const size = count(paramsEntries.call(v));
    return openEntries('urlsearchparams', 'URLSearchParams', size, () => paramsEntries.call(v));
  }
  return undefined;
}

/**
 * @param {string} type
 * @param {string} name
 * @param {number} size
 * @param {() => Iterator<[unknown, unknown]>} entries
 * @returns {Container}
 */
function openEntries(type, name, size, entries) {
  const named = `${name}(${size})`;
  return {
    type, size, title: named,
    encoded: (most, inner) => partial({ [TAG]: type, entries: first(entries(), most).map(([k, x]) => [encodeInner(k), inner(x)]) }, size, most),
    preview: () => preview(named, '{', first(entries(), PREVIEW_ENTRIES).map(([k, x]) => `${title(k, PREVIEW_STRING)} => ${title(x, PREVIEW_STRING)}`), size, '}'),
  };
}

/**
 * @param {number} size
 * @param {() => Iterator<unknown>} values
 * @returns {Container}
 */
function openSet(size, values) {
  const named = `Set(${size})`;
  return {
    type: 'set', size, title: named,
    encoded: (most, inner) => partial({ [TAG]: 'set', values: first(values(), most).map(inner) }, size, most),
    preview: () => preview(named, '{', first(values(), PREVIEW_ENTRIES).map(x => title(x, PREVIEW_STRING)), size, '}'),
  };
}

/**
 * @param {object} v
 * @returns {Container}
 */
function openObject(v) {
  const keys = Object.keys(v);
  const proto = Object.getPrototypeOf(v);
  const plain = proto === null || Object.getPrototypeOf(proto) === null;
  const name = plain ? '' : constructorName(v) || 'Object';
  return {
    type: 'object', size: keys.length,
    title: name || (keys.length ? '{…}' : '{}'),
    encoded: (most, inner) => partial(encodeFields(v, keys.slice(0, most), name, inner), keys.length, most),
    preview: () => preview(name, '{', keys.slice(0, PREVIEW_ENTRIES).map(k => `${fieldName(ellipsis(k, MAX_STRING))}: ${title(property(v, k), PREVIEW_STRING)}`), keys.length, '}'),
  };
}

/**
 * @param {object} v
 * @param {string[]} keys
 * @param {string} name the name of its class, empty for a plain object
 * @param {(v: unknown) => Json} inner
 * @returns {Json}
 */
function encodeFields(v, keys, name, inner) {
  const names = keys.map(k => ellipsis(k, MAX_STRING));
  // Names that were repaired or cut may be the same.
  if (!name && (keys.includes(TAG) || names.some((n, i) => n !== keys[i]) && new Set(names).size < names.length)) {
    return { [TAG]: 'object', entries: keys.map((k, i) => [names[i], inner(property(v, k))]) };
  }
  /** @type {Record<string, Json>} */
  const fields = {};
  for (const [i, k] of keys.entries()) {
    const value = inner(property(v, k));
    // Assigning to "__proto__" would set the prototype.
    if (k === '__proto__') Object.defineProperty(fields, k, { value, enumerable: true, configurable: true, writable: true });
    else fields[names[i]] = value;
  }
  return name ? { [TAG]: 'instance', name: ellipsis(name, 1000), fields } : fields;
}

/**
 * @param {Json} value
 * @param {number} size
 * @param {number} most
 * @returns {Json}
 */
function partial(value, size, most) {
  return size > most ? { [TAG]: 'partial', value, size } : value;
}

/**
 * @param {string} name
 * @param {string} left
 * @param {string[]} parts
 * @param {number} size
 * @param {string} right
 * @returns {string}
 */
function preview(name, left, parts, size, right) {
  const list = parts.length < size ? [...parts, '…'] : parts;
  return oneLine((name ? name + ' ' : '') + left + list.join(', ') + right, MAX_PREVIEW);
}

/**
 * The text of a value inside of a container's preview.
 * @param {unknown} v
 * @param {number} limit how many characters of texts are shown
 * @returns {string}
 */
function title(v, limit) {
  switch (typeof v) {
    case 'undefined': return 'undefined';
    case 'boolean': return String(v);
    case 'number': return Object.is(v, -0) ? '-0' : String(v);
    case 'bigint': return tooWide(v) ? 'BigInt' : `${v}n`;
    case 'string': return quote(v, limit);
    case 'symbol': return ellipsis(v.toString(), MAX_STRING);
    case 'function': return `ƒ ${functionName(v)}()`;
  }
  if (v === null) return 'null';
  try {
    const simple = /** @type {any} */ (encodeSimple(v));
    switch (simple?.[TAG]) {
      case 'date': return simple.iso ?? 'Invalid Date';
      case 'regexp': return `/${simple.source}/${simple.flags}`;
      case 'error': return simple.message ? `${simple.name}: ${oneLine(simple.message, limit)}` : simple.name;
    }
    return open(/** @type {object} */ (v)).title;
  } catch (e) {
    return `[threw: ${oneLine(messageOf(e), limit)}]`;
  }
}

/**
 * @param {string} s
 * @returns {string}
 */
function fieldName(s) {
  return /^[A-Za-z_$][\w$]*$/.test(s) ? ellipsis(s, PREVIEW_STRING) : quote(s, PREVIEW_STRING);
}

/**
 * @param {string} s
 * @param {number} limit
 * @returns {Json}
 */
function cutString(s, limit) {
  return { [TAG]: 'string', head: cut(s, limit), length: s.length };
}
