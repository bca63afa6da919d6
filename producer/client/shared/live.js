import { Commands } from './commands.js';
import { messageOf } from './read.js';

/** @typedef {import('./realm.js').Realm} Realm */

/** How long sessions outlive the connection that they came over, in milliseconds. */
const SESSIONS_WAIT = 60000;

/**
 * @typedef {object} LiveOptions
 * @property {import('./client.js').Environment} env
 * @property {import('./commands.js').Tools} tools
 * @property {() => import('./client.js').AnyTree} tree
 * @property {Set<(message: any) => void>} panels who hears what runespect panels elsewhere send
 * @property {import('./faults.js').Faults} faults
 * @property {(text: string) => void} send
 * @property {() => number} handles how many values a session may hold
 */

/**
 * What answers those who look at the page. It is loaded with the first command,
 * and what sessions need with the first session.
 */
export class Live {
  /** @param {LiveOptions} o */
  constructor(o) {
    this.o = o;
    this.commands = new Commands({ env: o.env, tools: o.tools, tree: o.tree, panels: o.panels, faults: o.faults, send: o.send });
    /** @type {Realm | undefined} */
    this.realm = undefined;
    /** @type {Promise<Realm> | undefined} */
    this.loading = undefined;
    this.stopped = false;
    /** @type {unknown} */
    this.timer = undefined;
  }

  /** @returns {boolean} whether somebody has a session, as DevTools has while they show the page */
  get watched() {
    return this.realm !== undefined && this.realm.sessions.size > 0;
  }

  /** @param {import('./protocol.js').CommandMessage} m */
  async receive(m) {
    if (!ofRealm(m.method)) return this.commands.receive(m);
    this.loading ??= this.load();
    try {
      await (this.realm ?? await this.loading).receive(m);
    } catch (e) {
      this.loading = undefined;
      this.o.send(JSON.stringify({ type: 'answer', id: m.id, ok: false, error: { code: 'failed', message: `the page could not load what a session needs: ${messageOf(e)}` } }));
    }
  }

  /** @returns {Promise<Realm>} */
  async load() {
    const { env, faults, send, handles, tree } = this.o;
    const [{ Realm }, { Catalog, Sources }, inspection] = await Promise.all([import('./realm.js'), import('./sources.js'), env.inspection()]);
    const catalog = new Catalog(inspection, env.fetch);
    this.realm = new Realm({
      scope: env.scope, inspection, faults, send, handles, now: env.now,
      trees: { live: id => tree().live(id), nodeOf: v => tree().nodeOf(v) },
      sources: s => new Sources(catalog, (event, data) => s.emit(event, data)),
    });
    if (this.stopped) this.realm.close();
    return this.realm;
  }

  /**
   * @param {unknown[]} args of a console call
   * @returns {number} the number under which they are kept for sessions, 0 for none
   */
  keep(args) {
    return this.realm?.keep(args) ?? 0;
  }

  /** The connection ended: what is shown goes, and sessions wait for it to come back. */
  pause() {
    this.commands.pause();
    this.o.env.clearTimer(this.timer);
    this.timer = this.o.env.setTimer(() => this.realm?.close(), SESSIONS_WAIT);
  }

  /**
   * There is a connection again.
   * @param {boolean} resumed whether the server knows the sessions still
   */
  resume(resumed) {
    this.o.env.clearTimer(this.timer);
    if (!resumed) this.realm?.close();
  }

  stop() {
    this.stopped = true;
    this.o.env.clearTimer(this.timer);
    this.commands.stop();
    this.realm?.close();
  }
}

/**
 * @param {string} method
 * @returns {boolean} whether a method needs a session and what comes with it
 */
export function ofRealm(method) {
  return !method.startsWith('tree.') && method !== 'runespect.send' || ['tree.resolve', 'tree.nodeOf', 'tree.inspected'].includes(method);
}
