import assert from 'node:assert/strict';
import test from 'node:test';
import { claimIdentity, freshID } from '../shared/identity.js';

/** A browser: its locks are shared, each tab's storage is its own. */
function browser({ locks = true } = {}) {
  const held = new Set();
  return {
    tab(copyOf) {
      const tab = { stored: copyOf?.stored };
      tab.ground = {
        load: () => tab.stored ?? null,
        save: id => { tab.stored = id; },
        lock: locks ? async name => {
          if (held.has(name)) return undefined;
          held.add(name);
          return () => held.delete(name);
        } : undefined,
        wait: async () => { tab.waited?.(); },
      };
      return tab;
    },
  };
}

test('a reload keeps the id, a copy takes another, which a reload keeps too', async () => {
  const b = browser();
  const first = b.tab();
  const one = await claimIdentity(first.ground);
  const second = b.tab(first);
  const two = await claimIdentity(second.ground);
  const third = b.tab(second);
  const three = await claimIdentity(third.ground);
  assert.equal(new Set([one.id, two.id, three.id]).size, 3);
  for (const [tab, claim] of [[first, one], [second, two]]) {
    claim.release();
    assert.equal((await claimIdentity(tab.ground)).id, claim.id);
  }
});

test('a reload that overtakes the page before it waits for it', async () => {
  const tab = browser().tab();
  const before = await claimIdentity(tab.ground);
  tab.waited = () => before.release();
  assert.equal((await claimIdentity(tab.ground)).id, before.id);
});

test('without locks the id is kept, and the server tells copies apart', async () => {
  const b = browser({ locks: false });
  const first = b.tab();
  const { id } = await claimIdentity(first.ground);
  assert.equal((await claimIdentity(first.ground)).id, id);
  assert.equal((await claimIdentity(b.tab(first).ground)).id, id);
});

test('storage and locks that refuse make a memory id', async () => {
  const refuse = () => { throw new Error('SecurityError'); };
  const ground = { load: refuse, save: refuse, lock: async () => refuse(), wait: async () => {} };
  const { id, release } = await claimIdentity(ground);
  assert.match(id, /^page-[0-9a-z]{10}$/);
  release();
});

test('what is no id in the storage is not used', async () => {
  for (const stored of ['', 'A B', 'x'.repeat(65), '*', 'ü']) {
    const tab = browser().tab({ stored });
    assert.match((await claimIdentity(tab.ground)).id, /^page-/);
  }
  assert.notEqual(freshID(), freshID());
});

test('a wanted id wins over the remembered one, and copies ask for it too', async () => {
  const b = browser();
  const first = b.tab({ stored: 'old' });
  const claim = await claimIdentity(first.ground, 'shop');
  assert.equal(claim.id, 'shop');
  const second = b.tab();
  assert.equal((await claimIdentity(second.ground, 'shop')).id, 'shop');
  second.stored = 'shop-2'; // as the server told it
  assert.equal((await claimIdentity(second.ground, 'shop')).id, 'shop-2');
});
