// Prints what programs publish, straight from the subjects, with nothing but
// Node: the same as main.go.
//
//   node consume.mjs 127.0.0.1:4222 'natscope.dev.rec.*.*.event.>'
//
// It speaks the little of the NATS protocol that a subscription needs; with the
// package @nats-io/transport-node the function printFrame does the same for its messages.
import net from "node:net";
import zlib from "node:zlib";

const [address = "127.0.0.1:4222", filter = "natscope.dev.rec.>"] = process.argv.slice(2);

process.stdout.on("error", () => process.exit()); // Whoever reads may leave, as head does.

// printFrame prints a line for each record of one message.
function printFrame(subject, headers, body) {
  const [, , kind, source, , plane] = subject.split(".");
  if (kind !== "rec" || headers.get("natscope-version") !== "1") return;
  if (headers.get("natscope-encoding") === "zstd") {
    if (!zlib.zstdDecompressSync) {
      console.error("consume: a compressed frame needs Node 22.15 or newer");
      return;
    }
    body = zlib.zstdDecompressSync(body);
  }
  let number = Number(headers.get("natscope-seq"));
  for (const line of body.toString().split("\n")) {
    if (line === "") continue;
    const record = JSON.parse(line);
    console.log(source, plane, number++, record.topic, JSON.stringify(record.data));
  }
}

function parseHeaders(text) {
  const headers = new Map();
  for (const line of text.split("\r\n").slice(1)) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}

const { hostname, port } = new URL("tcp://" + address);
const socket = net.connect(Number(port), hostname);
let buffer = Buffer.alloc(0);
socket.on("data", (chunk) => {
  buffer = Buffer.concat([buffer, chunk]);
  for (;;) {
    const end = buffer.indexOf("\r\n");
    if (end < 0) return;
    const words = buffer.subarray(0, end).toString().split(" ");
    let next = end + 2;
    switch (words[0]) {
      case "INFO":
        socket.write(`CONNECT {"verbose":false,"headers":true,"lang":"node","version":"1"}\r\nSUB ${filter} 1\r\nPING\r\n`);
        break;
      case "PING":
        socket.write("PONG\r\n");
        break;
      case "PONG":
        console.error("listening on", filter);
        break;
      case "-ERR":
        throw new Error(words.join(" "));
      case "HMSG": {
        const total = Number(words.at(-1));
        const head = Number(words.at(-2));
        if (buffer.length < next + total + 2) return;
        const message = buffer.subarray(next, next + total);
        printFrame(words[1], parseHeaders(message.subarray(0, head).toString()), message.subarray(head));
        next += total + 2;
        break;
      }
      case "MSG":
        next += Number(words.at(-1)) + 2;
        if (buffer.length < next) return;
        break;
    }
    buffer = buffer.subarray(next);
  }
});
socket.on("error", (err) => {
  console.error("consume:", err.message);
  process.exit(1);
});
