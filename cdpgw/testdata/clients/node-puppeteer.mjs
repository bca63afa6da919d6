// Debugs a program through puppeteer, which takes the gateway for a browser and
// each program for a target of it: node node-puppeteer.mjs 127.0.0.1:9230
import puppeteer from 'puppeteer-core';
import { debug } from './debug.mjs';

const browser = await puppeteer.connect({ browserURL: `http://${process.argv[2]}`, defaultViewport: null });
console.log('browser', (await browser.version()).split('/')[0], browser.browserContexts().length);
const target = await browser.waitForTarget((t) => t.url().endsWith('/shop.js'));
console.log('target', target.type());
const session = await target.createCDPSession();
await debug({
  send: (method, params) => session.send(method, params),
  on: (event, f) => session.on(event, f),
});
// Left to itself, and found again.
const found = browser.waitForTarget((t) => t !== target && t.url().endsWith('/shop.js'));
await session.detach();
const again = await (await found).createCDPSession();
console.log('again', (await again.send('Runtime.evaluate', { expression: '6 * 7' })).result.value);
const gone = new Promise((resolve) => browser.on('targetdestroyed', resolve));
await again.send('Runtime.evaluate', { expression: 'setTimeout(() => process.exit(0), 50); 0' });
await gone;
console.log('ended');
await browser.disconnect();
