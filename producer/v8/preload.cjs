'use strict';
// Runs first in every Node or Deno process below `natscope run`: says where the inspector of
// the process listens, by a file, and waits a moment until the file is taken away,
// so that nothing of the program is missed. It never fails and never waits for long.
(() => {
	// What a program in Deno was not permitted must not be asked for in its name.
	function permitted(directory) {
		const may = (descriptor) => Deno.permissions.querySync(descriptor).state === 'granted';
		return may({ name: 'write', path: directory }) && may({ name: 'read', path: directory });
	}
	try {
		if (typeof Deno === 'object' && Deno.permissions.querySync({ name: 'env' }).state !== 'granted') return;
		const directory = process.env.NATSCOPE_INSPECTORS;
		const cell = new Int32Array(new SharedArrayBuffer(4));
		const until = Date.now() + Number(process.env.NATSCOPE_HOLD_MS || 0);
		const wait = more => { while (Date.now() < until && more()) Atomics.wait(cell, 0, 0, 2); };
		if (!directory) return;
		if (!require('node:worker_threads').isMainThread) {
			// natscope held this thread until now; what it wants to put here, it does when it hears this.
			const binding = Object.getOwnPropertyNames(globalThis).find(name => name.startsWith('natscope$'));
			if (!binding) return;
			globalThis[binding]('ready');
			wait(() => !(Symbol.for('natscope.port') in globalThis));
			return;
		}
		// Package managers start programs; nobody means to inspect them.
		if (/[\\/](npm|npx|yarn|yarnpkg|pnpm|pnpx|corepack)(-cli)?(\.[cm]?js)?$/.test(process.argv[1] ?? '')) return;
		if (typeof Deno === 'object' && !permitted(directory)) return;
		const url = require('node:inspector').url();
		if (!url) return;
		const fs = require('node:fs');
		const { join } = require('node:path');
		const name = `${process.pid}-${Date.now()}`;
		const file = join(directory, name);
		fs.writeFileSync(join(directory, `.${name}`), `${url}\n`);
		fs.renameSync(join(directory, `.${name}`), file);
		wait(() => fs.existsSync(file));
	} catch {
		// The program runs as it would without natscope.
	}
})();
//# sourceURL=natscope://client/preload.cjs
