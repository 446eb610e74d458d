// A child process of main.ts: plays the worlds of the seeds it receives and sends back the totals.
import { count, noTotals } from "./totals.js";
import { scenarioOf } from "./world/scenario.js";
import { World } from "./world/world.js";

process.on("message", (seeds: readonly number[]) => {
  void play(seeds);
});
// The parent process is gone.
process.on("disconnect", () => process.exit());

async function play(seeds: readonly number[]): Promise<void> {
  const totals = noTotals();
  for (const seed of seeds) {
    count(totals, seed, await new World(scenarioOf(seed)).play());
    if (totals.broken.length > 0) break;
  }
  process.send?.(totals);
}
