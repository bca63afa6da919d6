// The shop's API.

/**
 * @typedef {{sku: string, name: string, cents: number, stock: number}} Product
 * @typedef {{order: number, cents: number, items: number}} Receipt
 */

/** An answer that is no success. */
export class APIError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.name = "APIError";
    this.status = status;
  }
}

/** @param {string} path @param {RequestInit} [init] @returns {Promise<any>} */
async function call(path, init) {
  const response = await fetch(path, init);
  const answer = await response.json();
  if (!response.ok) throw new APIError(response.status, answer.error);
  return answer;
}

/** @returns {Promise<Product[]>} */
export const products = () => call("/api/products");

/** @returns {Promise<unknown>} */
export const slow = () => call("/api/slow");

/** @returns {Promise<unknown>} */
export const fail = () => call("/api/fail");

/** @param {{sku: string, quantity: number}[]} items @returns {Promise<Receipt>} */
export function order(items) {
  return call("/api/orders", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ customer: "you", items }),
  });
}

/**
 * Calls onPrice for every price change until the stream ends.
 * @param {(product: Product) => void} onPrice
 */
export async function prices(onPrice) {
  const response = await fetch("/api/stream", { headers: { Accept: "text/event-stream" } });
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) onPrice(JSON.parse(data.slice("data: ".length)));
    }
  }
}
