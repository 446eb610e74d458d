// Says what takes long, and only then: a step shorter than two seconds prints nothing. Decides
// nothing else.
const quietMs = 2000;
const everyMs = process.stderr.isTTY ? 100 : 10_000;

/**
 * @template T
 * @param {string} title what is being done, e.g. "installing dependencies (first run)"
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(title, work) {
  const startedAt = performance.now();
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  const line = () => `palisade: ${title}… ${seconds()}`;
  let shown = false;
  const show = () => {
    if (!shown && !process.stderr.isTTY) process.stderr.write(`palisade: ${title}…\n`);
    else process.stderr.write(process.stderr.isTTY ? `\r${line()}` : `${line()}\n`);
    shown = true;
  };
  /** @type {NodeJS.Timeout} */
  let timer = setTimeout(() => {
    show();
    timer = setInterval(show, everyMs);
  }, quietMs);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
    if (shown) process.stderr.write(process.stderr.isTTY ? `\r${line()}\n` : `${line()} done\n`);
  }
}
