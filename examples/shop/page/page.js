// The shop front: an App with a Ticker, a ProductList of ProductCards and a
// Cart of CartItems. Every component is also shown by natscope.

import * as api from "./api.js";
import { Component, connect } from "./components.js";

/** @param {string} id @returns {any} */
const $ = (id) => document.getElementById(id);
/** @param {number} cents */
const euros = (cents) => (cents / 100).toFixed(2);

/** @param {string} text */
const say = (text) => { $("status").textContent = text; };

/**
 * Makes a row of text cells and one button.
 * @param {HTMLElement} place @param {string} label @param {() => void} onClick
 */
function row(place, label, onClick) {
  const element = document.createElement("div");
  element.className = "row";
  const name = element.appendChild(document.createElement("span"));
  const price = element.appendChild(document.createElement("span"));
  const button = element.appendChild(document.createElement("button"));
  price.className = "price";
  button.textContent = label;
  button.addEventListener("click", onClick);
  place.append(element);
  return { element, name, price };
}

/**
 * Refuses what is no whole number in a range.
 * @param {unknown} n @param {number} most @returns {number}
 */
function whole(n, most) {
  if (!Number.isInteger(n) || Number(n) < 1 || Number(n) > most) throw new RangeError(`it takes a whole number from 1 to ${most}`);
  return Number(n);
}

class ProductList extends Component {
  element() { return $("products"); }
}

class Ticker extends Component {
  /** @param {Component} parent */
  constructor(parent) {
    super("Ticker", { seconds: 0, changes: 0, last: "" }, parent);
    setInterval(() => this.update({ seconds: Number(this.values.seconds) + 1 }), 1000);
  }
  element() { return $("ticker"); }
  /** @param {Record<string, unknown>} values */
  update(values) {
    super.update(values);
    const { seconds, changes, last } = this.values;
    $("ticker").textContent = `open for ${seconds} s, ${changes} price changes${last ? `, last ${last}` : ""}`;
  }
}

class ProductCard extends Component {
  /** @param {api.Product} product @param {Component} parent @param {Cart} cart */
  constructor(product, parent, cart) {
    super("ProductCard", { ...product }, parent);
    this.view = row($("products"), "Add", () => cart.add(this.product));
    this.update(product);
  }
  element() { return this.view?.element; }
  get product() { return /** @type {api.Product} */ (this.values); }
  /** @param {Record<string, unknown>} values */
  update(values) {
    super.update(values);
    const { name, cents, stock } = this.product;
    this.view.name.textContent = `${name} `;
    this.view.name.append(Object.assign(document.createElement("span"), { className: "stock", textContent: `${stock} left` }));
    this.view.price.textContent = euros(cents);
  }
}

class CartItem extends Component {
  /** @param {api.Product} product @param {Cart} cart */
  constructor(product, cart) {
    super("CartItem", { sku: product.sku, quantity: 0, cents: product.cents }, cart);
    this.label = product.name;
    this.view = row($("cart"), "Remove", () => cart.drop(product.sku));
    this.view.element.querySelector("button")?.classList.add("quiet");
  }
  element() { return this.view?.element; }
  setters() {
    return {
      quantity: (/** @type {unknown} */ n) => {
        this.update({ quantity: whole(n, 99) });
        /** @type {Cart} */ (this.parent).sum();
      },
    };
  }
  /** @param {Record<string, unknown>} values */
  update(values) {
    super.update(values);
    this.view.name.textContent = `${this.values.quantity} × ${this.label}`;
    this.view.price.textContent = euros(Number(this.values.quantity) * Number(this.values.cents));
  }
  remove() {
    super.remove();
    this.view.element.remove();
  }
}

class Cart extends Component {
  /** @param {Component} parent */
  constructor(parent) {
    super("Cart", { items: 0, total: "0.00" }, parent);
    /** @type {Map<string, CartItem>} */
    this.lines = new Map();
    this.sum();
  }
  element() { return $("cart"); }
  /** @param {api.Product} product */
  add(product) {
    const item = this.lines.get(product.sku) ?? new CartItem(product, this);
    this.lines.set(product.sku, item);
    item.update({ quantity: Number(item.values.quantity) + 1, cents: product.cents });
    this.sum();
    console.log("Added to the cart", { sku: product.sku, quantity: item.values.quantity, cents: product.cents });
  }
  /** @param {string} sku */
  drop(sku) {
    this.lines.get(sku)?.remove();
    this.lines.delete(sku);
    this.sum();
  }
  clear() {
    for (const sku of [...this.lines.keys()]) this.drop(sku);
  }
  sum() {
    const lines = [...this.lines.values()];
    const cents = lines.reduce((sum, l) => sum + Number(l.values.quantity) * Number(l.values.cents), 0);
    this.update({ items: lines.reduce((n, l) => n + Number(l.values.quantity), 0), total: euros(cents) });
    $("order").disabled = lines.length === 0;
    $("empty").disabled = lines.length === 0;
  }
  async order() {
    const items = [...this.lines.values()].map((l) => ({ sku: String(l.values.sku), quantity: Number(l.values.quantity) }));
    if (items.length === 0) return;
    try {
      const receipt = await api.order(items);
      console.info("Order placed", receipt);
      say(`Order ${receipt.order} placed: ${euros(receipt.cents)}`);
    } catch (err) {
      console.error("Order failed", err, { items });
      say(String(err));
    }
    this.clear();
  }
}

class App extends Component {
  constructor() {
    super("App", { orders: 0, shopping: true });
    this.ticker = new Ticker(this);
    this.list = new ProductList("ProductList", { count: 0 }, this);
    this.cart = new Cart(this);
    /** @type {Map<string, ProductCard>} */
    this.cards = new Map();
  }

  element() { return document.querySelector("main"); }
  setters() {
    return {
      shopping: (/** @type {unknown} */ on) => {
        if (typeof on !== "boolean") throw new TypeError("it takes true or false");
        $("auto").checked = on;
        this.update({ shopping: on });
      },
    };
  }

  /** Reads the products and shows them. */
  async refresh() {
    for (const product of await api.products()) {
      const card = this.cards.get(product.sku);
      if (card) card.update(product);
      else this.cards.set(product.sku, new ProductCard(product, this.list, this.cart));
      if (product.stock < 6) console.warn("Stock is low", { sku: product.sku, left: product.stock });
    }
    this.list.update({ count: this.cards.size });
  }

  /** @param {api.Product} product */
  repriced(product) {
    this.cards.get(product.sku)?.update(product);
    this.ticker.update({ changes: Number(this.ticker.values.changes) + 1, last: `${product.name} ${euros(product.cents)}` });
  }

  async order() {
    await this.cart.order();
    this.update({ orders: Number(this.values.orders) + 1 });
    await this.refresh();
  }

  /** One step of a customer who takes a product now and then and orders every fifth time. @param {number} n */
  async step(n) {
    if (n % 5 === 0) return this.order();
    const card = [...this.cards.values()][n % this.cards.size];
    if (card) this.cart.add(card.product);
  }
}

const app = new App();
connect(() => { $("watched").textContent = "natscope is connected: look at this page in DevTools."; });

/**
 * Makes a button run something whose failure is shown.
 * @param {string} id @param {() => unknown} run
 */
function button(id, run) {
  $(id).addEventListener("click", async () => {
    try {
      await run();
    } catch (err) {
      console.error(`${id} failed`, err);
      say(String(err));
    }
  });
}

button("order", () => app.order());
button("empty", () => app.cart.clear());
button("slow", async () => {
  say("Waiting for the report…");
  console.log("Report", await api.slow());
  say("The report is here.");
});
button("fail", () => api.fail());
button("log", () => {
  console.debug("A debug line", performance.now());
  console.log("A line with an object", { cart: app.cart.values, tags: ["coffee", "demo"], when: new Date() });
  console.warn("A warning with a map", new Map([["orders", app.values.orders]]));
  console.error("An error with a cause", new Error("the grinder jammed", { cause: new Error("a pebble among the beans") }));
  say("Look at the Console.");
});
// An uncaught error, which natscope shows as an exception.
$("throw").addEventListener("click", () => { throw new Error("somebody pressed the button"); });
$("auto").addEventListener("change", () => app.update({ shopping: $("auto").checked }));

let step = 0;
setInterval(() => {
  if (!$("auto").checked || document.hidden) return;
  app.step(++step).catch((err) => console.error("The customer failed", err));
}, 3000);

console.info("The shop front is open", { url: location.href });
app.refresh().catch((err) => console.error("No products", err));
api.prices((product) => app.repriced(product)).then(
  () => console.warn("The price stream ended"),
  (err) => console.warn("The price stream broke", err),
);
