import { Entry } from './describe.js';
import { CommandError } from './failure.js';
import { first, getter, tryCall } from './read.js';

/** @typedef {import('./remote.js').Mirror} Mirror */

/** How many properties one answer holds; the rest is behind one more property. */
export const MAX_PROPERTIES = 2000;
/** How many prototypes are looked at for inherited properties. */
const MAX_PROTOTYPES = 100;

const mapEntries = Map.prototype.entries;
const setValues = Set.prototype.values;
const bufferLength = getter(ArrayBuffer.prototype, 'byteLength');
const boxed = [Number, String, Boolean, Symbol, BigInt].map(c => c.prototype.valueOf);

/** What did not fit into an answer: the properties of an object from a place on. */
class Rest {
  /**
   * @param {object} of
   * @param {number} from
   */
  constructor(of, from) {
    this.of = of;
    this.from = from;
    rests.add(this);
  }
}

/** Which objects are of the class above. @type {WeakSet<object>} */
const rests = new WeakSet();

/**
 * @typedef {object} PropertyOptions
 * @property {boolean} [ownProperties]
 * @property {boolean} [accessorPropertiesOnly]
 * @property {boolean} [nonIndexedPropertiesOnly]
 * @property {boolean} [generatePreview]
 */

/**
 * The answer to getProperties. No accessor is called.
 * @param {Mirror} mirror
 * @param {unknown} handle
 * @param {PropertyOptions} o
 * @returns {{result: object[], internalProperties?: object[]}}
 */
export function propertiesOf(mirror, handle, o) {
  const { value, group } = mirror.handles.get(handle);
  if (value === null || typeof value !== 'object' && typeof value !== 'function') {
    throw new CommandError('failed', 'Value with given id is not an object');
  }
  const rest = rests.has(value) ? /** @type {Rest} */ (value) : undefined;
  const object = rest ? rest.of : value;
  // Where a Proxy is known as one, its traps are left alone.
  if (mirror.host.isProxy(object)) return { result: [], internalProperties: [] };
  const reader = new Reader(mirror, group, o);
  reader.read(object, rest?.from ?? 0, rest !== undefined);
  if (o.accessorPropertiesOnly || rest) return { result: reader.out };
  return { result: reader.out, internalProperties: internals(mirror, group, object, o.generatePreview) };
}

class Reader {
  /**
   * @param {Mirror} mirror
   * @param {string} group
   * @param {PropertyOptions} o
   */
  constructor(mirror, group, o) {
    this.mirror = mirror;
    this.group = group;
    this.o = o;
    /** @type {object[]} */
    this.out = [];
    /** @type {Set<PropertyKey>} */
    this.seen = new Set();
  }

  /**
   * @param {object} object
   * @param {number} from
   * @param {boolean} own
   */
  read(object, from, own) {
    if (this.own(object, true, from)) return;
    if (own || this.o.ownProperties) return;
    let at = Object.getPrototypeOf(object);
    for (let i = 0; at && i < MAX_PROTOTYPES; i++, at = Object.getPrototypeOf(at)) {
      if (this.own(at, false, 0)) return;
    }
  }

  /**
   * Adds the own properties of an object.
   * @param {object} object
   * @param {boolean} isOwn
   * @param {number} from
   * @returns {boolean} whether the answer is full
   */
  own(object, isOwn, from) {
    const keys = Reflect.ownKeys(object);
    const indexed = Array.isArray(object) || ArrayBuffer.isView(object);
    for (let i = from; i < keys.length; i++) {
      const key = keys[i];
      if (this.seen.has(key)) continue;
      if (this.o.nonIndexedPropertiesOnly && indexed && typeof key === 'string' && /^\d+$/.test(key)) continue;
      if (this.out.length >= MAX_PROPERTIES) {
        this.more(object, i, keys.length - i);
        return true;
      }
      this.seen.add(key);
      this.add(object, key, isOwn);
    }
    return false;
  }

  /**
   * @param {object} object
   * @param {PropertyKey} key
   * @param {boolean} isOwn
   */
  add(object, key, isOwn) {
    let d;
    try {
      d = Object.getOwnPropertyDescriptor(object, key);
    } catch (e) {
      this.out.push({ name: String(key), value: this.wrap(e), wasThrown: true, configurable: false, enumerable: false, isOwn });
      return;
    }
    if (!d) return;
    const accessor = !('value' in d);
    if (this.o.accessorPropertiesOnly && !accessor) return;
    this.out.push({
      name: typeof key === 'symbol' ? key.toString() : String(key),
      ...(accessor
        ? { get: this.wrap(d.get), set: this.wrap(d.set) }
        : { value: this.wrap(d.value), writable: Boolean(d.writable) }),
      configurable: Boolean(d.configurable), enumerable: Boolean(d.enumerable), isOwn,
      ...(typeof key === 'symbol' ? { symbol: this.wrap(key) } : {}),
    });
  }

  /**
   * @param {object} object
   * @param {number} from
   * @param {number} left
   */
  more(object, from, left) {
    const objectId = this.mirror.handles.add(new Rest(object, from), this.group);
    this.out.push({
      name: `… ${left} more`, configurable: false, enumerable: true, isOwn: true, writable: false,
      value: { type: 'object', className: 'Object', description: 'the next properties', objectId },
    });
  }

  /** @param {unknown} v */
  wrap(v) {
    return this.mirror.wrap(v, { group: this.group, preview: this.o.generatePreview });
  }
}

/**
 * What the language keeps of an object besides its properties, as far as a page can see it.
 * @param {Mirror} mirror
 * @param {string} group
 * @param {object} v
 * @param {boolean | undefined} preview
 * @returns {object[]}
 */
function internals(mirror, group, v, preview) {
  /** @type {object[]} */
  const out = [];
  const add = (/** @type {string} */ name, /** @type {unknown} */ value) => out.push({ name, value: mirror.wrap(value, { group, preview }) });
  try {
    const { subtype } = mirror.kind(v);
    if (subtype === 'map') add('[[Entries]]', first(mapEntries.call(v), MAX_PROPERTIES).map(([key, value]) => new Entry({ key, value })));
    if (subtype === 'set') add('[[Entries]]', first(setValues.call(v), MAX_PROPERTIES).map(value => new Entry({ value })));
    if (subtype === 'arraybuffer') buffers(/** @type {ArrayBuffer} */ (v), add);
    for (const valueOf of boxed) {
      const value = tryCall(/** @type {any} */ (valueOf), v);
      if (value !== undefined) add('[[PrimitiveValue]]', value);
    }
    const proto = Object.getPrototypeOf(v);
    if (proto !== null) add('[[Prototype]]', proto);
  } catch {
    // A Proxy that throws shows what it let be seen.
  }
  return out;
}

/**
 * @param {ArrayBuffer} v
 * @param {(name: string, value: unknown) => void} add
 */
function buffers(v, add) {
  const length = bufferLength.call(v);
  const views = /** @type {const} */ ([['Int8Array', Int8Array], ['Uint8Array', Uint8Array], ['Int16Array', Int16Array], ['Int32Array', Int32Array]]);
  for (const [name, View] of views) {
    if (length % View.BYTES_PER_ELEMENT === 0) add(`[[${name}]]`, new View(v));
  }
  add('[[ArrayBufferByteLength]]', length);
}
