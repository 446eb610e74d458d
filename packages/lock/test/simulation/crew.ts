// The worker processes: hands out seeds until enough was done or something is broken. Which worlds there are depends on the seed alone; who plays them does not matter.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Run } from "./arguments.js";
import { mixed } from "./engine/chance.js";
import { emptyTally, merge, type Tally } from "./tally.js";

const WORLDS_AT_ONCE = 1;
const worker = fileURLToPath(new URL("./worker.js", import.meta.url));

/** The seed of the so-manieth world of a run. */
export function seedOf(run: number, index: number): number {
  return mixed(run, `world ${index}`) & 0x7fffffff;
}

export async function playAll(run: Run, onProgress: (tally: Tally) => void): Promise<Tally> {
  const tally = emptyTally();
  const endsAt = performance.now() + run.limitMs;
  let next = 0;
  const isOver = (): boolean => tally.broken.length > 0 || tally.acquisitions >= run.acquisitions || performance.now() > endsAt;
  const seeds = (): readonly number[] => Array.from({ length: WORLDS_AT_ONCE }, () => seedOf(run.seed, next++));
  const children = Array.from({ length: run.workers }, () => fork(worker, { execArgv: ["--max-semi-space-size=64"] }));
  try {
    await Promise.all(
      children.map(async (child) => {
        while (!isOver()) {
          merge(tally, await played(child, seeds()));
          onProgress(tally);
        }
      }),
    );
  } finally {
    for (const child of children) child.kill();
  }
  return tally;
}

function played(child: ChildProcess, seeds: readonly number[]): Promise<Tally> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a worker ended with ${code} while it played ${seeds.join(", ")}`));
    child.once("exit", ended);
    child.once("message", (tally) => {
      child.off("exit", ended);
      resolve(tally as Tally);
    });
    child.send(seeds);
  });
}
