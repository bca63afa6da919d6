/**
 * What a Node process knows of its values besides what the language tells.
 */
import { createRequire } from 'node:module';
import { runInThisContext } from 'node:vm';
import { types } from 'node:util';

/**
 * A process has no document.
 * @param {object} v
 * @returns {string | undefined}
 */
export function describeNode(v) {
  void v;
  return undefined;
}

/**
 * Tells that a value is a Proxy; what is behind it stays its own.
 * @param {object} v
 * @returns {boolean}
 */
export function isProxy(v) {
  return types.isProxy(v);
}

/** Global accessors of the platform whose reading has no effect. */
export const quiet = Object.freeze(['process', 'Buffer', 'navigator', 'crypto', 'performance', 'fetch']);

/**
 * Declares names as a script with let would, since eval keeps what it declares to itself.
 * @param {string[]} names
 * @returns {string[]} the names that could not be declared so
 */
export function declare(names) {
  return names.filter(name => {
    if (declared.has(name)) return false;
    try {
      runInThisContext(`let ${name}`);
      declared.add(name);
      return false;
    } catch {
      return true;
    }
  });
}

/** @type {Set<string>} */
const declared = new Set();

/** @returns {Record<string, unknown>} functions that only code from a console sees */
export function commandLine() {
  return { require: createRequire(`${process.cwd()}/`) };
}

/** @returns {{usedSize: number, totalSize: number} | undefined} */
export function heap() {
  const { heapUsed, heapTotal } = process.memoryUsage();
  return { usedSize: heapUsed, totalSize: heapTotal };
}
