/** The events that a click is made of; while a pick runs, the page hears of none. */
const CLICKS = ['pointerdown', 'pointerup', 'mousedown', 'mouseup', 'touchstart', 'touchend', 'dblclick', 'auxclick', 'contextmenu'];

/**
 * Lets the person in front of the page pick an element: what the pointer is
 * over is told, a click picks, Escape gives up.
 * @param {import('../shared/commands.js').PickEvents} events
 * @returns {() => void} ends it
 */
export function pick({ over, done }) {
  /** @type {EventTarget | undefined} */
  let last;
  /** @param {Event} e */
  const swallow = e => {
    e.preventDefault();
    e.stopImmediatePropagation();
  };
  /** @param {Event} e */
  const move = e => {
    const target = e.composedPath()[0];
    if (target === last || !(target instanceof Element)) return;
    last = target;
    over(target);
  };
  /** @param {Event} e */
  const click = e => {
    swallow(e);
    const target = e.composedPath()[0];
    done(target instanceof Element ? target : undefined);
  };
  /** @param {KeyboardEvent} e */
  const key = e => {
    if (e.key !== 'Escape') return;
    swallow(e);
    done(undefined);
  };
  const options = { capture: true, passive: false };
  for (const type of CLICKS) addEventListener(type, swallow, options);
  addEventListener('click', click, options);
  addEventListener('pointermove', move, options);
  addEventListener('pointerover', move, options);
  addEventListener('keydown', key, options);
  return () => {
    for (const type of CLICKS) removeEventListener(type, swallow, options);
    removeEventListener('click', click, options);
    removeEventListener('pointermove', move, options);
    removeEventListener('pointerover', move, options);
    removeEventListener('keydown', key, options);
  };
}
