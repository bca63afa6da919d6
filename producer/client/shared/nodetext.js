import { encode, encodeShort, primitiveText } from './value.js';
import { wellFormed } from './text.js';
import { property } from './read.js';

/**
 * The JSON of components, as package subjects/tree (Go) reads it. It is written
 * by hand: a page may have thousands of them, and change them with every frame.
 */

/** @typedef {import('./tree.js').TreeNode} TreeNode */

/** How large the values of one node may be before they are shortened. */
const VALUE_SIZE = 8 << 10;
const MAX_ATTRS = 20;

/** A text that is its own attribute, and its own JSON but for the quotes. */
const PLAIN = /^[ !#-[\]-~]{0,100}$/;

/** The JSON of names, which are few and come again and again. @type {Map<string, string>} */
const quotes = new Map();
const MAX_QUOTES = 5000;
const MAX_QUOTED = 200;

/**
 * Returns the JSON of a node with everything below it, and marks all of it as sent.
 * Depth is bounded by the tree's limit.
 * @param {TreeNode} n
 * @returns {string}
 */
export function nested(n) {
  n.sent = true;
  const text = alone(n);
  if (!n.first) return text;
  const children = [];
  for (let c = /** @type {TreeNode | undefined} */ (n.first); c; c = c.next) children.push(nested(c));
  return `${text.slice(0, -1)},"children":[${children.join(',')}]}`;
}

/**
 * Returns the JSON of a node without its children.
 * @param {TreeNode} n
 * @returns {string}
 */
export function alone(n) {
  let attrs = '';
  let values = '';
  let writable = '';
  let shown = 0;
  for (const name in n.values) {
    const v = n.values[name];
    const key = quoted(name);
    /** @type {string} */
    let json;
    /** @type {string | undefined} */
    let text;
    if (typeof v === 'number' && Number.isFinite(v) && !Object.is(v, -0) || typeof v === 'boolean') {
      json = String(v);
      text = `"${json}"`;
    } else if (typeof v === 'string' && PLAIN.test(v)) {
      json = text = `"${v}"`;
    } else {
      const line = primitiveText(v);
      if (line !== undefined) text = JSON.stringify(line);
      json = JSON.stringify(encode(v));
      if (json.length > VALUE_SIZE) json = JSON.stringify(encodeShort(v));
    }
    values += `${values === '' ? '' : ','}${key}:${json}`;
    if (name === '') continue;
    if (text !== undefined && shown < MAX_ATTRS) attrs += `${shown++ === 0 ? '' : ','}[${key},${text}]`;
    if (n.set !== undefined && isWritable(n.set, name)) writable += `${writable === '' ? '' : ','}${key}`;
  }
  let out = `{"id":${n.id},"name":${quoted(n.name)}`;
  if (attrs !== '') out += `,"attrs":[${attrs}]`;
  if (values !== '') out += `,"values":{${values}}`;
  if (writable !== '') out += `,"writable":[${writable}]`;
  if (n.loc) out += `,"loc":${JSON.stringify(n.loc)}`;
  return out + '}';
}

/**
 * @param {string} name
 * @returns {string} its JSON
 */
function quoted(name) {
  let text = quotes.get(name);
  if (text !== undefined) return text;
  text = JSON.stringify(wellFormed(name));
  if (name.length > MAX_QUOTED) return text;
  if (quotes.size >= MAX_QUOTES) quotes.clear();
  quotes.set(name, text);
  return text;
}

/**
 * @param {unknown} set
 * @param {string} name
 * @returns {boolean} whether a component's set takes the name
 */
function isWritable(set, name) {
  return typeof set === 'function' || set !== null && typeof set === 'object' && Object.hasOwn(set, name) && typeof property(set, name) === 'function';
}
