/** How long after the start it is looked whether Svelte made the page, in milliseconds. */
const SETTLED = 1000;

/**
 * Looks for others who know the page's components: a runespect agent, or what a
 * development build of Svelte leaves at its elements. What the page shows itself comes first.
 * @param {import('./client.js').Client} client
 */
export function watchGuests(client) {
  const { env, faults } = client;
  /** @type {Promise<{receive: (m: any) => void}> | undefined} */
  let bridge;
  client.keep(env.watchAgent(first => {
    bridge ??= import('./adopt.js').then(m => m.adopt(client));
    bridge.then(b => first !== undefined && b.receive(first)).catch(e => faults.add(e));
  }));
  if (env.kind !== 'client') return;
  env.setTimer(() => {
    if (bridge || client.stopped || !client.tree.adoptable) return;
    env.svelte().then(({ SvelteTree, hasSvelte }) => {
      if (client.stopped || !client.tree.adoptable || !hasSvelte()) return;
      const tree = new SvelteTree({ changed: () => client.scheduleFlush(), limits: () => client.link.limits, revision: client.tree.revision });
      client.undos.push(() => tree.stop());
      client.show(tree);
    }).catch(e => faults.add(e));
  }, SETTLED);
}
