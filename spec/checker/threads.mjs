// Shares models among threads, the largest first, so that none is left to run alone at the end.
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";

/**
 * Resolves when all are done; rejects when a thread fails, which ends the others.
 * @param {readonly import("./models.mjs").Model[]} models
 * @param {(found: import("./verdict.mjs").Found) => void} onFound
 */
export async function checkAll(models, onFound) {
  const queue = [...models].sort((a, b) => b.states - a.states);
  const workers = Array.from(
    { length: Math.min(availableParallelism(), queue.length) },
    () => new Worker(new URL("worker.mjs", import.meta.url)),
  );
  try {
    await Promise.all(workers.map((worker) => drain(worker, queue, onFound)));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

/**
 * @param {Worker} worker
 * @param {import("./models.mjs").Model[]} queue
 * @param {(found: import("./verdict.mjs").Found) => void} onFound
 * @returns {Promise<void>}
 */
function drain(worker, queue, onFound) {
  return new Promise((resolve, reject) => {
    const next = () => {
      const model = queue.shift();
      if (model === undefined) resolve();
      else worker.postMessage(model);
    };
    worker.on("error", reject);
    worker.on("message", (found) => {
      onFound(found);
      next();
    });
    next();
  });
}
