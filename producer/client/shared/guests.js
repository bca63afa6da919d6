/** When it is looked whether Svelte made the page, in milliseconds after the start: a development server may take its time. */
const LOOKS = [1000, 3000, 10000];

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
  /** @param {number} i */
  const look = i => void env.setTimer(() => {
    if (bridge || client.stopped || !client.tree.adoptable) return;
    env.svelte().then(({ SvelteTree, hasSvelte }) => {
      if (client.stopped || !client.tree.adoptable) return;
      if (!hasSvelte()) {
        if (i + 1 < LOOKS.length) look(i + 1);
        return;
      }
      const tree = new SvelteTree({ changed: () => client.scheduleFlush(), limits: () => client.link.limits, revision: client.tree.revision });
      client.undos.push(() => tree.stop());
      client.show(tree);
    }).catch(e => faults.add(e));
  }, LOOKS[i] - (LOOKS[i - 1] ?? 0));
  look(0);
}
