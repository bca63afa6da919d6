const MAX_DEPTH = 100;
const MAX_SIZE = 256 << 10;

/**
 * Returns the JSON of a payload if JSON loses nothing of it: null, booleans,
 * finite numbers but -0, well-formed strings, arrays without holes and plain
 * objects of these. Otherwise it throws a TypeError that names the place.
 * @param {unknown} payload
 * @returns {string}
 */
export function losslessJSON(payload) {
  check(payload, 'payload', 1);
  const text = JSON.stringify(payload);
  if (text.length > MAX_SIZE) throw new TypeError(`natscope: the payload has ${text.length} characters of JSON, at most ${MAX_SIZE} are sent`);
  return text;
}

/**
 * @param {unknown} v
 * @param {string} path
 * @param {number} depth
 */
function check(v, path, depth) {
  if (v === null || typeof v === 'boolean') return;
  if (typeof v === 'number') {
    if (!Number.isFinite(v) || Object.is(v, -0)) refuse(path, `is ${Object.is(v, -0) ? '-0' : v}`);
    return;
  }
  if (typeof v === 'string') {
    if (/[\ud800-\udfff]/.test(v.replace(/[\ud800-\udbff][\udc00-\udfff]/g, ''))) refuse(path, 'holds half of a surrogate pair');
    return;
  }
  if (typeof v !== 'object') refuse(path, `is a ${typeof v}`);
  if (depth > MAX_DEPTH) refuse(path, `is more than ${MAX_DEPTH} levels deep, or holds itself`);
  checkObject(/** @type {object} */ (v), path, depth);
}

/**
 * @param {object} v
 * @param {string} path
 * @param {number} depth
 */
function checkObject(v, path, depth) {
  const array = Array.isArray(v);
  const proto = Object.getPrototypeOf(v);
  if (!array && proto !== null && Object.getPrototypeOf(proto) !== null) refuse(path, 'is not a plain object');
  const descriptors = Object.getOwnPropertyDescriptors(v);
  const keys = Reflect.ownKeys(descriptors);
  if (array && keys.length !== v.length + 1) refuse(path, 'is an array with holes or with names');
  for (const key of keys) {
    if (array && key === 'length') continue;
    if (typeof key === 'symbol') refuse(path, 'has a key that is a symbol');
    const at = `${path}${array ? `[${String(key)}]` : `.${String(key)}`}`;
    const d = /** @type {Record<PropertyKey, PropertyDescriptor>} */ (descriptors)[key];
    if (!('value' in d) || !d.enumerable) refuse(at, 'is an accessor or hidden');
    if (key === 'toJSON' && typeof d.value === 'function') refuse(at, 'changes how it is written');
    check(d.value, at, depth + 1);
  }
}

/**
 * @param {string} path
 * @param {string} why
 * @returns {never}
 */
function refuse(path, why) {
  throw new TypeError(`natscope: ${path} ${why}, which JSON cannot hold; publish plain JSON values`);
}
