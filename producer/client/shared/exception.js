import { encode, encodeShort } from './value.js';
import { errorStack } from './read.js';
import { parseStack, shownAddress } from './stack.js';

/**
 * What is known of an uncaught exception.
 * @typedef {{text: string, value: unknown, url?: string, line?: number, column?: number}} Thrown
 */

/**
 * Returns the JSON of an exception record.
 * @param {Thrown} t
 * @param {number} kept the number under which what was thrown is kept live, 0 for none
 * @returns {string}
 */
export function exceptionJSON({ text, value, url, line, column }, kept) {
  const ref = kept || undefined;
  const stack = value instanceof Error ? parseStack(errorStack(value)) : [];
  const place = url ? { url: shownAddress(url), line, column } : { url: stack[0]?.url, line: stack[0]?.line, column: stack[0]?.column };
  const json = JSON.stringify({ text, value: encode(value), ...place, stack, ref });
  return json.length <= 64 << 10 ? json : JSON.stringify({ text, value: encodeShort(value), ...place, stack: stack.slice(0, 10), ref });
}
