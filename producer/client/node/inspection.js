/**
 * What sessions need of a process. It is loaded with the first session.
 */
export * from './inspect.js';
export * from './scripts.js';
