/**
 * What the parts of the client and their environments agree upon. There is no code in it.
 */

/** @typedef {import('./unsupported.js').Unsupported} Unsupported */
/** @typedef {import('./tree.js').TreeNode} TreeNode */

/**
 * A tree that the page shows: of components, or of Cordis.
 * @typedef {object} AnyTree
 * @property {number} revision the one that was sent last
 * @property {boolean} pending whether there is anything to take
 * @property {(spent?: () => boolean) => import('./tree.js').TreeRecord[]} take the records that tell the reader what changed; when the time is spent, some of it may be left
 * @property {() => void} reset the reader lost the tree: everything is sent with the next take
 * @property {(id: number) => TreeNode | undefined} get
 * @property {() => Iterable<TreeNode>} nodes
 * @property {(n: TreeNode, symbol: string) => ((value: unknown) => unknown) | undefined} setter
 * @property {boolean} [adoptable] whether another tree may take its place by itself
 * @property {Record<string, (params: any) => unknown>} [methods] commands that the tree carries out itself
 * @property {(id: number) => object | undefined} live the live object of a node
 * @property {(v: object) => {id: number, name: string} | undefined} nodeOf the node that an object stands for
 */

/**
 * What is told of the place where the client runs.
 * @typedef {{url: string, title: string, visible: boolean | undefined}} Place
 */

/**
 * Everything that differs between environments. An operation that one of them
 * cannot do returns the unsupported result.
 * @typedef {object} Environment
 * @property {any} scope the global object
 * @property {string} runtime the environment's name and version
 * @property {'client' | 'host'} kind whether it is a page or a process
 * @property {string} [hostname] of a process
 * @property {number} [pid]
 * @property {(net: import('./fetch.js').NetOptions) => (() => void) | Unsupported} watchNetwork
 * @property {() => Place} place
 * @property {(changed: () => void) => (() => void) | Unsupported} watchPlace
 * @property {(events: {leave: () => void, back: () => void, online: () => void}) => (() => void) | Unsupported} watchLife
 * @property {(thrown: (t: import('./exception.js').Thrown) => void) => (() => void) | Unsupported} watchErrors
 * @property {(loaded: (entries: import('./resources.js').Entry[]) => void) => (() => void) | Unsupported} watchResources
 * @property {(found: (first: unknown) => void) => (() => void) | Unsupported} watchAgent waits for a runespect agent
 * @property {(message: object) => void} tellAgent
 * @property {() => Promise<{SvelteTree: any, hasSvelte: () => boolean}>} svelte loads what reads components that Svelte made
 * @property {import('./identity.js').Ground} ground
 * @property {import('./link.js').LinkOptions['connect']} connect
 * @property {() => Promise<import('./commands.js').Tools>} tools loads what commands need
 * @property {() => Promise<import('./realm.js').Inspection & import('./sources.js').ScriptGround>} inspection loads what sessions need
 * @property {typeof fetch} fetch the environment's own, which nobody captures
 * @property {(f: () => void, rest: number) => void} nextFlush calls f when the tree may be flushed again, after as many milliseconds at least
 * @property {(f: () => void) => void} whenIdle calls f when nothing else is to do, or soon at the latest
 * @property {() => number} now milliseconds on a monotonic clock
 * @property {(f: () => void, ms: number) => unknown} setTimer
 * @property {(timer: any) => void} clearTimer
 */

/**
 * @typedef {object} Options
 * @property {string} url the ingest's WebSocket address
 * @property {string} token
 * @property {string} [id] the source id to prefer over the remembered one
 * @property {string} [name] the shown name
 * @property {boolean} [console] whether to capture the console; default yes
 * @property {boolean} [network] whether to capture what the page requests; default yes
 * @property {boolean} [fetch] whether fetch is among that; default yes
 * @property {boolean} [calls] whether XMLHttpRequest, WebSocket, EventSource and beacons are among that; default yes
 * @property {boolean} [components] whether components that others tell of are shown: runespect, Svelte; default yes
 * @property {'secrets' | 'off' | import('./redact.js').Rules} [redact] what must not leave the page; default nothing is taken out, save passwords in addresses
 * @property {boolean} [resources] whether what the browser loads by itself is among that; default yes
 */

/**
 * A component that the page shows.
 * @typedef {object} Component
 * @property {number} id its number in the page, 0 if limits left it out
 * @property {(values: Record<string, unknown>) => void} update changes the named values and leaves the others
 * @property {() => void} remove removes it and everything below it
 */

/**
 * What a page may say of a component besides its values.
 * @typedef {object} ComponentOptions
 * @property {((name: string, value: any) => unknown) | Record<string, (value: any) => unknown>} [set]
 *   sets a value that somebody edited; it throws, or rejects, with the reason why not
 * @property {Element | Element[] | (() => Element | Element[] | null | undefined) | null} [element] where it is on the page
 * @property {string} [loc] where it is defined, as file:line
 */

export {};
