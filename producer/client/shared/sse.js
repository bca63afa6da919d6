/** @typedef {{event: string, id: string, data: string, size: number}} StreamEvent what is kept of the data, and the size of all of it in UTF-16 units */

/** How long one event gets before the rest of it is cut. */
const MAX_EVENT = 64 << 10;

/**
 * Parses a stream of server-sent events, as the HTML standard does: lines end
 * with CR, LF or both, a byte order mark is skipped, an empty line sends.
 */
export class EventStreamParser {
  /** @param {(e: StreamEvent) => void} emit */
  constructor(emit) {
    this.emit = emit;
    this.decoder = new TextDecoder();
    this.line = '';
    /** Whether the last character was a CR, whose LF is still to be skipped. */
    this.cr = false;
    this.event = '';
    this.id = '';
    this.data = '';
    this.size = 0;
    /** How much of the line was cut. */
    this.dropped = 0;
    this.any = false;
  }

  /** @param {Uint8Array} bytes */
  write(bytes) {
    let text = this.decoder.decode(bytes, { stream: true });
    if (this.cr && text) {
      if (text[0] === '\n') text = text.slice(1);
      this.cr = false;
    }
    if (text.endsWith('\r')) this.cr = true;
    const lines = text.split(/\r\n|\n|\r/);
    for (let i = 0; i < lines.length; i++) {
      if (this.line.length < MAX_EVENT) this.line += lines[i];
      else this.dropped += lines[i].length;
      if (i + 1 < lines.length) {
        this.take(this.line);
        this.line = '';
        this.dropped = 0;
      }
    }
  }

  /** @param {string} line */
  take(line) {
    if (line === '') {
      if (this.any) this.emit({ event: this.event || 'message', id: this.id, data: this.data, size: this.size });
      this.event = this.data = '';
      this.size = 0;
      this.any = false;
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    switch (field) {
      case 'event': this.event = value; break;
      case 'id': if (!value.includes('\0')) this.id = value; break;
      case 'data':
        this.size += value.length + this.dropped + (this.any ? 1 : 0);
        if (this.data.length < MAX_EVENT) this.data += this.any ? '\n' + value : value;
        this.any = true;
        break;
    }
  }
}
