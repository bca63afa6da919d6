/** The names by which people at a console speak of what they selected. */
const SELECTED = ['$0', '$1', '$2', '$3', '$4'];

/**
 * Answers which objects stand for nodes of the tree, for those who hold objects of this program.
 * @param {any} scope
 * @param {import('../shared/client.js').Client} client
 * @returns {{live: (id: number) => object | undefined, numbers: (...objects: any[]) => number[], select: (...ids: number[]) => void, restore: () => void}}
 */
export function nodeOf(scope, client) {
  /** @type {string[]} the names that stand for something at the moment */
  let named = [];
  const live = (/** @type {number} */ id) => client.faults.run(() => client.tree.live(id));
  const restore = () => {
    for (const name of named) delete scope[name];
    named = [];
  };
  return {
    live,
    numbers: (...objects) => objects.map(o => client.faults.run(() => client.tree.nodeOf(o)?.id) ?? 0),
    /** Names selected nodes for the one evaluation that follows; a program's own names stay. */
    select: (...ids) => {
      restore();
      SELECTED.forEach((name, i) => {
        const value = ids[i] ? live(ids[i]) : undefined;
        if (value === undefined || name in scope) return;
        Object.defineProperty(scope, name, { value, configurable: true, enumerable: false, writable: true });
        named.push(name);
      });
    },
    restore,
  };
}
