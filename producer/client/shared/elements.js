/** @typedef {import('./tree.js').TreeNode} TreeNode */

/**
 * The page's elements of a component: one, several, or a function that returns
 * them. What goes wrong in the page's function counts as no element.
 * @param {TreeNode} n
 * @returns {object[]}
 */
export function elementsOf(n) {
  let e = n.element;
  try {
    if (typeof e === 'function') e = e();
    const list = Array.isArray(e) ? e.slice(0, 100) : [e];
    return list.filter(x => x !== null && typeof x === 'object' && typeof /** @type {any} */ (x).getBoundingClientRect === 'function');
  } catch {
    return [];
  }
}

/**
 * Finds the component that an element belongs to: the nearest element above
 * that is one of a component's; of several components with it, the innermost.
 * @param {import('./client.js').AnyTree} tree
 * @param {any} element
 * @returns {TreeNode | undefined}
 */
export function componentAt(tree, element) {
  /** @type {Map<object, TreeNode>} */
  const owners = new Map();
  for (const n of tree.nodes()) {
    if (n.element === undefined) continue;
    for (const e of elementsOf(n)) {
      const before = owners.get(e);
      if (!before || before.depth <= n.depth) owners.set(e, n);
    }
  }
  for (let at = element; at; at = at.parentNode ?? at.host) {
    const n = owners.get(at);
    if (n) return n;
  }
  return undefined;
}
