// Debugs the program of the target of the type node through chrome-remote-interface:
// node node-cri.mjs 127.0.0.1:9230
import CDP from 'chrome-remote-interface';
import { debug } from './debug.mjs';

const [host, port] = process.argv[2].split(':');
const client = await CDP({ host, port, target: (list) => list.find((t) => t.type === 'node') });
await debug({
  send: (method, params) => client.send(method, params),
  on: (event, f) => client.on(event, f),
});
const ended = new Promise((resolve) => client.on('disconnect', resolve));
await client.Runtime.evaluate({ expression: 'setTimeout(() => process.exit(0), 50); 0' });
await ended;
console.log('ended');
