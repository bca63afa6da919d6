/** How long the server may take to answer, in milliseconds, and how many questions wait at once. */
const PATIENCE = 10000;
const MAX_WAITING = 32;

/** What the page asks the server, each question once. */
export class Questions {
  /**
   * @param {object} o
   * @param {(text: string) => boolean} o.send
   * @param {(f: () => void, ms: number) => unknown} o.setTimer
   * @param {(timer: any) => void} o.clearTimer
   */
  constructor({ send, setTimer, clearTimer }) {
    this.send = send;
    this.setTimer = setTimer;
    this.clearTimer = clearTimer;
    this.last = 0;
    /** @type {Map<number, {resolve: (v: any) => void, reject: (e: Error) => void, timer: unknown}>} */
    this.waiting = new Map();
  }

  /**
   * @param {string} what
   * @returns {Promise<any>}
   */
  ask(what) {
    return new Promise((resolve, reject) => {
      const id = ++this.last;
      if (this.waiting.size >= MAX_WAITING) {
        reject(new Error(`natscope: ${MAX_WAITING} questions wait for an answer already`));
        return;
      }
      if (!this.send(JSON.stringify({ type: 'ask', id, what }))) {
        reject(new Error('natscope: there is no connection to the server'));
        return;
      }
      this.waiting.set(id, { resolve, reject, timer: this.setTimer(() => this.answered({ id, error: 'the server did not answer in time' }), PATIENCE) });
    });
  }

  /** @param {{id: number, result?: any, error?: string}} m */
  answered({ id, result, error }) {
    const w = this.waiting.get(id);
    if (!w) return;
    this.waiting.delete(id);
    this.clearTimer(w.timer);
    if (error === undefined) w.resolve(result);
    else w.reject(new Error(`natscope: ${error}`));
  }

  /** @param {string} error */
  fail(error) {
    for (const id of [...this.waiting.keys()]) this.answered({ id, error });
  }
}
