// Says what takes long, and only then: a step shorter than two seconds prints nothing.
const QUIET_MS = 2000;
const EVERY_MS = 10_000;

/**
 * @template T
 * @param {string} title what is being done, e.g. "installing dependencies (first run)"
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(title, work) {
  const startedAt = performance.now();
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  let shown = "";
  const show = () => {
    process.stderr.write(`palisade: ${title}…${shown && ` ${seconds()}`}\n`);
    shown = title;
  };
  const first = setTimeout(show, QUIET_MS);
  const later = setInterval(show, EVERY_MS);
  try {
    return await work();
  } finally {
    clearTimeout(first);
    clearInterval(later);
    if (shown !== "") process.stderr.write(`palisade: ${title}… ${seconds()} done\n`);
  }
}
