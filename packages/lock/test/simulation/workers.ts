// The worker processes: hands out seeds until enough leases were given or a promise is broken. The
// seed of the run alone decides which worlds there are.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Run } from "./arguments.js";
import { mixed } from "./engine/chance.js";
import { merge, noTotals, type Totals } from "./totals.js";

const WORLDS_AT_ONCE = 1;
const worker = fileURLToPath(new URL("./worker.js", import.meta.url));

/** The seed of one world of a run. */
export function seedOf(run: number, index: number): number {
  return mixed(run, `world ${index}`) & 0x7fffffff;
}

export async function playAll(run: Run, onProgress: (totals: Totals) => void): Promise<Totals> {
  const totals = noTotals();
  const endsAt = performance.now() + run.limitMs;
  let next = 0;
  const isOver = (): boolean => totals.broken.length > 0 || totals.acquisitions >= run.acquisitions || performance.now() > endsAt;
  const seeds = (): readonly number[] => Array.from({ length: WORLDS_AT_ONCE }, () => seedOf(run.seed, next++));
  const children = Array.from({ length: run.workers }, () => fork(worker, { execArgv: ["--max-semi-space-size=64"] }));
  try {
    await Promise.all(
      children.map(async (child) => {
        while (!isOver()) {
          merge(totals, await played(child, seeds()));
          onProgress(totals);
        }
      }),
    );
  } finally {
    for (const child of children) child.kill();
  }
  return totals;
}

function played(child: ChildProcess, seeds: readonly number[]): Promise<Totals> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a worker ended with ${code} while it played ${seeds.join(", ")}`));
    child.once("exit", ended);
    child.once("message", (totals) => {
      child.off("exit", ended);
      resolve(totals as Totals);
    });
    child.send(seeds);
  });
}
