import { isEntry, kindOf } from './describe.js';
import { CommandError } from './failure.js';
import { first, functionName } from './read.js';

/** @typedef {import('./describe.js').Host} Host */
/** @typedef {import('./handles.js').Handles} Handles */

/**
 * A RemoteObject of the inspector's protocol, whose objectId is a handle.
 * @typedef {{type: string, subtype?: string, className?: string, value?: unknown, unserializableValue?: string, description?: string, objectId?: string, preview?: Preview}} RemoteObject
 */

/** @typedef {{type: string, subtype?: string, description?: string, overflow: boolean, properties: PropertyPreview[], entries?: {key?: Preview, value: Preview}[]}} Preview */
/** @typedef {{name: string, type: string, subtype?: string, value?: string}} PropertyPreview */

/**
 * How an object of the session's own tree is called, so that its RemoteObject is a node.
 * @callback NameOf
 * @param {object} v
 * @returns {string | undefined}
 */

/** @typedef {{group?: string, byValue?: boolean, preview?: boolean}} WrapOptions */

const PREVIEW_PROPERTIES = 5;
const PREVIEW_INDICES = 100;
const PREVIEW_TEXT = 100;
/** How deep a value may be that is sent by value. */
const MAX_DEPTH = 1000;

const mapEntries = Map.prototype.entries;
const setValues = Set.prototype.values;

/** Makes RemoteObjects of live values, for one session. */
export class Mirror {
  /**
   * @param {Handles} handles
   * @param {Host} host
   * @param {NameOf} nameOf
   */
  constructor(handles, host, nameOf) {
    this.handles = handles;
    this.host = host;
    this.nameOf = nameOf;
  }

  /**
   * @param {unknown} v
   * @param {WrapOptions} [o]
   * @returns {RemoteObject}
   */
  wrap(v, { group, byValue, preview } = {}) {
    switch (typeof v) {
      case 'undefined': return { type: 'undefined' };
      case 'string': return { type: 'string', value: v };
      case 'boolean': return { type: 'boolean', value: v };
      case 'number': return Number.isFinite(v) && !Object.is(v, -0)
        ? { type: 'number', value: v, description: String(v) }
        : { type: 'number', unserializableValue: Object.is(v, -0) ? '-0' : String(v), description: Object.is(v, -0) ? '-0' : String(v) };
      case 'bigint': return { type: 'bigint', unserializableValue: `${v}n`, description: `${v}n` };
    }
    if (v === null) return { type: 'object', subtype: 'null', value: null };
    if (byValue) {
      if (typeof v === 'symbol') throw new CommandError('failed', "Object couldn't be returned by value");
      const { type, subtype } = kindOf(v, this.host);
      return { type, subtype, value: plain(v, 0) };
    }
    const kind = this.kind(v);
    /** @type {RemoteObject} */
    const out = { ...kind, objectId: this.handles.add(v, group) };
    if (preview && kind.type === 'object') out.preview = this.preview(/** @type {object} */ (v));
    return out;
  }

  /**
   * @param {unknown} v
   * @returns {import('./describe.js').Kind}
   */
  kind(v) {
    const name = v !== null && typeof v === 'object' ? this.nameOf(v) : undefined;
    return name === undefined ? kindOf(v, this.host) : { type: 'object', subtype: 'node', className: name, description: name };
  }

  /**
   * @param {object} v
   * @returns {Preview}
   */
  preview(v) {
    const { type, subtype, description } = this.kind(v);
    /** @type {Preview} */
    const out = { type, subtype, description, overflow: false, properties: [] };
    try {
      if (isEntry(v)) this.previewEntry(/** @type {any} */ (v), out);
      else this.fill(v, out);
    } catch {
      // A Proxy that refuses shows nothing more.
    }
    return out;
  }

  /**
   * @param {object} v
   * @param {Preview} out
   */
  fill(v, out) {
    if (out.subtype === 'map') this.entries(first(mapEntries.call(v), PREVIEW_PROPERTIES + 1).map(([key, value]) => ({ key, value })), out);
    if (out.subtype === 'set') this.entries(first(setValues.call(v), PREVIEW_PROPERTIES + 1).map(value => ({ value })), out);
    if (out.subtype === 'proxy' || out.subtype === 'error') return;
    const list = out.subtype === 'array' || out.subtype === 'typedarray';
    let named = 0;
    let indexed = 0;
    for (const key of keysOf(v, list)) {
      const d = Object.getOwnPropertyDescriptor(v, key);
      if (!d || !d.enumerable) continue;
      const index = list && /^\d+$/.test(key);
      if (index ? indexed >= PREVIEW_INDICES : named >= PREVIEW_PROPERTIES) {
        out.overflow = true;
        if (index) continue;
        return;
      }
      if (index) indexed++;
      else named++;
      out.properties.push(this.property(key, d));
    }
  }

  /**
   * @param {{key?: unknown, value: unknown}[]} list
   * @param {Preview} out
   */
  entries(list, out) {
    if (list.length > PREVIEW_PROPERTIES) out.overflow = true;
    out.entries = list.slice(0, PREVIEW_PROPERTIES).map(e => ({ ...('key' in e ? { key: this.short(e.key) } : {}), value: this.short(e.value) }));
  }

  /**
   * @param {import('./describe.js').Entry} e
   * @param {Preview} out
   */
  previewEntry(e, out) {
    for (const [name, value] of Object.entries(e)) out.properties.push(this.property(name, { value }));
  }

  /**
   * The preview of a value inside of another preview.
   * @param {unknown} v
   * @returns {Preview}
   */
  short(v) {
    const { type, subtype, value } = this.property('', { value: v });
    return { type, subtype, description: value, overflow: v !== null && typeof v === 'object', properties: [] };
  }

  /**
   * @param {string} name
   * @param {PropertyDescriptor} d
   * @returns {PropertyPreview}
   */
  property(name, d) {
    if (!('value' in d)) return { name, type: 'accessor' };
    const v = d.value;
    if (typeof v === 'string') return { name, type: 'string', value: middle(v) };
    if (v === null || typeof v === 'boolean' || v === undefined) return { name, type: v === null ? 'object' : typeof v, ...(v === null ? { subtype: 'null' } : {}), value: String(v) };
    const { type, subtype, description } = this.kind(v);
    if (type === 'function') return { name, type, value: functionName(v) };
    const text = subtype === 'error' ? (description ?? '').split('\n', 1)[0] : description ?? '';
    return { name, type, ...(subtype ? { subtype } : {}), value: middle(text) };
  }
}

/**
 * Own property names without making a list of a huge array's.
 * @param {object} v
 * @param {boolean} list
 * @returns {string[]}
 */
function keysOf(v, list) {
  const length = list ? /** @type {any[]} */ (v).length : 0;
  if (length <= PREVIEW_INDICES) return Object.keys(v);
  const out = [];
  for (let i = 0; i <= PREVIEW_INDICES; i++) out.push(String(i));
  return out;
}

/**
 * @param {string} s
 * @returns {string} s, or its begin and end
 */
function middle(s) {
  return s.length <= PREVIEW_TEXT ? s : `${s.slice(0, PREVIEW_TEXT / 2)}…${s.slice(1 - PREVIEW_TEXT / 2)}`;
}

/**
 * A value as plain JSON, as the inspector's protocol sends it by value.
 * @param {unknown} v
 * @param {number} depth
 * @returns {unknown}
 */
function plain(v, depth) {
  if (depth > MAX_DEPTH) throw new CommandError('failed', 'Object reference chain is too long');
  if (v === null || typeof v === 'boolean' || typeof v === 'string') return v;
  if (typeof v === 'number') return Number.isFinite(v) ? v : null;
  if (typeof v === 'bigint' || typeof v === 'symbol') throw new CommandError('failed', "Object couldn't be returned by value");
  if (Array.isArray(v)) return Array.from(v, x => x === undefined ? null : plain(x, depth + 1));
  /** @type {Record<string, unknown>} */
  const out = {};
  for (const key of Object.keys(/** @type {object} */ (v))) {
    const x = /** @type {any} */ (v)[key];
    if (x === undefined) continue;
    Object.defineProperty(out, key, { value: plain(x, depth + 1), enumerable: true, configurable: true, writable: true });
  }
  return out;
}
