// A child of main.ts: plays the worlds of the seeds that it is sent, and says what came of them. Decides nothing.
import { count, emptyTally } from "./tally.js";
import { scenarioOf } from "./world/scenario.js";
import { World } from "./world/world.js";

process.on("message", (seeds: readonly number[]) => {
  void play(seeds);
});
// Whoever started us is gone.
process.on("disconnect", () => process.exit());

async function play(seeds: readonly number[]): Promise<void> {
  const tally = emptyTally();
  for (const seed of seeds) {
    count(tally, seed, await new World(scenarioOf(seed)).play());
    if (tally.broken.length > 0) break;
  }
  process.send?.(tally);
}
