/** A process has no elements. */
export class SvelteTree {}

/** @returns {boolean} */
export function hasSvelte() {
  return false;
}
