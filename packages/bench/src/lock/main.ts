// The lock's benchmarks, all in one run and on the same servers.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { RedisFleet } from "@palisade/testkit";
import type { Contestant } from "./contestant.js";
import { openFloor, openPalisade } from "./contestant.js";
import { forgottenResources } from "./forgotten-resources.js";
import { handover } from "./handover.js";
import { peers, waiters } from "./peers.js";
import { atOnce, uncontended } from "./uncontended.js";

const parts: Readonly<Record<string, (urls: readonly string[]) => Promise<void>>> = {
  "one-at-a-time": (urls) => withContestants(urls, uncontended),
  "64-at-once": (urls) => withContestants(urls, (contestants) => atOnce(contestants, 64)),
  "256-at-once": (urls) => withContestants(urls, (contestants) => atOnce(contestants, 256)),
  handover: (urls) => handover(waiters, urls),
  "held-leases": async (urls) => {
    const program = fileURLToPath(new URL("held-leases.js", import.meta.url));
    const { status } = spawnSync(process.execPath, ["--expose-gc", program, ...urls], { stdio: "inherit" });
    if (status !== 0) process.exitCode = 1;
  },
  "forgotten-resources": () => forgottenResources(),
};

export const lockParts = Object.keys(parts);

export async function benchLock(chosen: readonly string[]): Promise<void> {
  // Nothing on disk and no proxy: only the network and the scripts are compared.
  await using fleet = await RedisFleet.start({ nodes: 5, clock: "real", config: { appendonly: "no" } });
  console.log(fleet.description);
  const urls = fleet.nodes.map(({ directUrl }) => directUrl);
  for (const [name, measure] of Object.entries(parts)) if (chosen.includes(name)) await measure(urls);
}

async function withContestants(urls: readonly string[], measure: (contestants: readonly Contestant[]) => Promise<void>): Promise<void> {
  const contestants: Contestant[] = [];
  try {
    for (const open of [openFloor, openPalisade, ...peers]) contestants.push(await open(urls));
    await measure(contestants);
  } finally {
    await Promise.all(contestants.map((contestant) => contestant.close()));
  }
}
