/**
 * What the client costs, beside the same without it: node test/bench.js
 */
import { Context } from '@deepseek-ai/cordis';
import { captureConsole } from '../shared/console.js';
import { CordisTree } from '../shared/cordis.js';
import { Faults } from '../shared/faults.js';
import { Outbox } from '../shared/outbox.js';
import { Patches } from '../shared/patch.js';
import { Tree } from '../shared/tree.js';

/** The median processor time of one call in microseconds, over batches: a busy machine does not change it much. */
function each(f, n = 2000, batches = 15) {
  const times = [];
  for (let b = 0; b < batches; b++) {
    const start = process.cpuUsage();
    for (let i = 0; i < n; i++) f(i);
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / n);
  }
  return times.sort((a, b) => a - b)[batches >> 1];
}

const rows = [];
const row = (what, value, unit, target = '') => rows.push({ what, value: Number(value.toFixed(2)), unit, target });

const bare = { log() {} };
const captured = { log() {} };
const outbox = new Outbox();
captureConsole({ console: captured, patches: new Patches(), faults: new Faults(), record: (topic, data) => outbox.push('console', 1, topic, data), now: () => 0 });
row('console.log of a text and a number, captured', each(i => captured.log('request', i)) - each(i => bare.log('request', i)), 'µs');
row('console.log of an object with 10 fields, captured', each(i => captured.log({ a: i, b: 'b', c: [1], d: {}, e: null, f: 1, g: 2, h: 3, i: 4, j: 5 })), 'µs');

const tree = new Tree(() => ({ nodes: 100000, depth: 256 }));
const nodes = Array.from({ length: 2048 }, (_, i) => tree.add(`Item${i % 20}`, { i, name: 'n' }));
tree.take();
let round = 0;
row('flush of 2048 changed components', each(() => { round++; nodes.forEach(n => tree.update(n, { i: round })); tree.take(); }, 1, 40) / 1000, 'ms', '4');
row('flush of 1 of 2048 components', each(() => { tree.update(nodes[7], { i: ++round }); tree.take(); }, 100) / 1000, 'ms');
row('snapshot of 2048 components', each(() => { tree.reset(); tree.take(); }, 1, 40) / 1000, 'ms', '4');
const quiet = new Tree(() => ({ nodes: 100000, depth: 256 }));
const many = Array.from({ length: 10000 }, (_, i) => quiet.add('Item', { i }));
row('update of one of 10000 components while nobody takes them', each(i => quiet.update(many[i % 10000], { i })), 'µs');

const root = new Context();
for (let i = 0; i < 1023; i++) root.plugin({ name: `p${i}`, apply() {} });
await new Promise(r => setTimeout(r, 200));
const cordis = new CordisTree(root, { details: false, limits: () => ({ cordisNodes: 2048, depth: 256 }), changed() {}, faults: new Faults(), revision: 0 });
cordis.take();
row('Cordis: look at 2047 nodes, nothing changed', each(() => cordis.take(), 1, 40) / 1000, 'ms', '4');
row('Cordis: snapshot of 2047 nodes', each(() => { cordis.reset(); cordis.take(); }, 1, 40) / 1000, 'ms', '4');

console.table(rows);
