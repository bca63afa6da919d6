// Attaches to a gateway as programs do that use chrome-remote-interface, and
// prints what it saw: node cri.mjs 127.0.0.1:9230
import CDP from 'chrome-remote-interface';

const [host, port] = process.argv[2].split(':');
const targets = await CDP.List({ host, port });
console.log('targets', targets.map((t) => t.id).join(' '));

const client = await CDP({ host, port, target: 'dev' });
const { DOM, Network, Runtime } = client;
const { root } = await DOM.getDocument();
console.log('root', root.children[0].nodeName);

const { searchId, resultCount } = await DOM.performSearch({ query: '//Route/..' });
const { nodeIds } = await DOM.getSearchResults({ searchId, fromIndex: 0, toIndex: resultCount });
const { outerHTML } = await DOM.getOuterHTML({ nodeId: nodeIds[0] });
console.log('search', resultCount, outerHTML);
const route = await DOM.querySelector({ nodeId: root.nodeId, selector: 'Router > Route' });
console.log('query', (await DOM.getAttributes({ nodeId: route.nodeId })).attributes.join('='));
const { nodes } = await DOM.getFlattenedDocument({ depth: -1 });
console.log('flattened', nodes.length);

const line = new Promise((resolve) => Runtime.consoleAPICalled(resolve));
await Runtime.enable();
const { args } = await line;
console.log('line', args[0].value, args[1].value, args[2].type);

const request = new Promise((resolve) => Network.requestWillBeSent(resolve));
await Network.enable();
const { requestId } = await request;
const { body } = await Network.getResponseBody({ requestId });
console.log('body', body);

const { sources } = await client.send('DSHInspector.getSources');
console.log('sources', sources.map((s) => s.label).join(', '));

const failure = await client.send('Runtime.noSuchMethod').catch((error) => error);
console.log('unknown', failure.message);
await client.close();
