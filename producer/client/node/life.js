/**
 * Tells when the process ends.
 * @param {{leave: () => void, back: () => void, online: () => void}} events
 * @returns {() => void} ends it
 */
export function watchLife({ leave }) {
  process.on('exit', leave);
  return () => void process.off('exit', leave);
}
