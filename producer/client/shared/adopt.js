import { RuneTree } from './runetree.js';

/**
 * Shows the components of a runespect agent in this page. It is loaded with the agent's first message.
 * @param {import('./client.js').Client} client
 * @returns {{receive: (m: any) => void}}
 */
export function adopt(client) {
  const { env } = client;
  const tree = new RuneTree({
    send: m => env.tellAgent(m), setTimer: env.setTimer, clearTimer: env.clearTimer,
    limits: () => client.link.limits, revision: client.tree.revision,
    tell: (event, id) => client.live?.commands.tell(event, id),
    changed: () => {
      // What the page itself shows comes first.
      if (client.tree !== tree && tree.panel.nodes && client.tree.adoptable) client.show(tree);
      client.scheduleFlush();
    },
  });
  client.undos.push(() => tree.stop());
  tree.start();
  return { receive: m => client.faults.run(() => tree.panel.receive(m)) };
}
