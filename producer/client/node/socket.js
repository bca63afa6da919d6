import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';

/** @typedef {import('../shared/link.js').Socket} Socket */
/** @typedef {import('../shared/link.js').SocketEvents} SocketEvents */

/** How large a message of the server may be, in bytes. */
const MAX_MESSAGE = 64 << 20;

/**
 * Opens a WebSocket: Node 20 has none of its own. It does not keep the process
 * alive, and its requests are not those of the program.
 * @param {string} url
 * @param {string[]} protocols
 * @param {SocketEvents} events
 * @returns {Socket}
 */
export function connect(url, protocols, events) {
  const key = randomBytes(16).toString('base64');
  const target = new URL(url.replace(/^ws/, 'http'));
  const request = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, {
    agent: false,
    headers: { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': key, 'Sec-WebSocket-Protocol': protocols.join(', ') },
  });
  ours.add(request);
  /** @type {import('node:stream').Duplex | undefined} */
  let stream;
  let over = false;
  const close = () => {
    if (over) return;
    over = true;
    stream?.destroy();
    request.destroy();
    events.close();
  };
  request.on('socket', s => s.unref());
  request.on('error', close);
  request.on('response', close);
  request.on('upgrade', (response, socket, head) => {
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    if (response.headers['sec-websocket-accept'] !== accept) {
      socket.destroy();
      close();
      return;
    }
    stream = socket;
    /** @type {any} */ (socket).unref?.();
    /** @type {any} */ (socket).setNoDelay?.(true);
    const reader = new Reader({
      text: t => events.message(t),
      ping: data => socket.write(frame(10, data)),
      close,
    });
    socket.on('data', (/** @type {Buffer} */ d) => reader.write(d));
    socket.on('error', close);
    socket.on('close', close);
    events.open();
    if (head.length > 0) reader.write(head);
  });
  request.end();
  return {
    send: text => {
      if (stream && !over) stream.write(frame(1, Buffer.from(text)));
    },
    close: () => {
      if (stream && !over) stream.end(frame(8, Buffer.alloc(0)));
      else request.destroy();
    },
  };
}

/** The requests of natscope itself. @type {WeakSet<object>} */
const ours = new WeakSet();

/**
 * @param {object} request
 * @returns {boolean} whether a request is natscope's own
 */
export function isOurs(request) {
  return ours.has(request);
}

/**
 * @param {number} opcode
 * @param {Buffer} data
 * @returns {Buffer} one frame, masked as the standard wants it of clients
 */
function frame(opcode, data) {
  const mask = randomBytes(4);
  const long = data.length > 65535 ? 8 : data.length > 125 ? 2 : 0;
  const out = Buffer.allocUnsafe(6 + long + data.length);
  out[0] = 0x80 | opcode;
  out[1] = 0x80 | (long === 8 ? 127 : long === 2 ? 126 : data.length);
  if (long === 2) out.writeUInt16BE(data.length, 2);
  if (long === 8) out.writeBigUInt64BE(BigInt(data.length), 2);
  mask.copy(out, 2 + long);
  for (let i = 0; i < data.length; i++) out[6 + long + i] = data[i] ^ mask[i & 3];
  return out;
}

/** Reads the frames of a server, which are not masked. */
class Reader {
  /** @param {{text: (t: string) => void, ping: (data: Buffer) => void, close: () => void}} on */
  constructor(on) {
    this.on = on;
    /** @type {Buffer} */
    this.buffer = Buffer.alloc(0);
    /** @type {Buffer[]} */
    this.parts = [];
    this.size = 0;
  }

  /** @param {Buffer} data */
  write(data) {
    this.buffer = this.buffer.length > 0 ? Buffer.concat([this.buffer, data]) : data;
    while (this.frame());
  }

  /** @returns {boolean} whether a whole frame was there */
  frame() {
    const b = this.buffer;
    if (b.length < 2) return false;
    let length = b[1] & 127;
    let head = 2;
    if (length === 126) {
      if (b.length < 4) return false;
      length = b.readUInt16BE(2);
      head = 4;
    } else if (length === 127) {
      if (b.length < 10) return false;
      length = Number(b.readBigUInt64BE(2));
      head = 10;
    }
    if (length + this.size > MAX_MESSAGE || (b[1] & 128) !== 0) {
      this.on.close();
      return false;
    }
    if (b.length < head + length) return false;
    this.buffer = b.subarray(head + length);
    this.take(b[0], b.subarray(head, head + length));
    return true;
  }

  /**
   * @param {number} first the first byte of the frame
   * @param {Buffer} data
   */
  take(first, data) {
    switch (first & 15) {
      case 8: this.on.close(); return;
      case 9: this.on.ping(data); return;
      case 10: return;
    }
    this.parts.push(data);
    this.size += data.length;
    if ((first & 128) === 0) return;
    const text = Buffer.concat(this.parts).toString();
    this.parts = [];
    this.size = 0;
    this.on.text(text);
  }
}
