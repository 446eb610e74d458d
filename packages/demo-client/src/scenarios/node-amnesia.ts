// One node restarts without its memory while the lock is held. If it voted, it would grant again
// what it has granted already, and with two others make a second majority.

import type { ActRun, Scenario } from "../engine/act-run.js";
import { PrivateFleet } from "./private-fleet.js";

const actors = ["worker 1", "worker 2", "lock"];

async function forgets(act: ActRun, fleet: PrivateFleet): Promise<void> {
  await fleet.node("n3").restart({ forget: true });
  act.step("breaks", "lock", { text: "n3 restarts, and has forgotten everything" });
}

async function withQuarantine(act: ActRun): Promise<void> {
  const ttlMs = 30_000;
  const fleet = await PrivateFleet.start(act);
  const network = await fleet.networkOf("worker 1");
  const one = await act.worker("worker 1", { redisUrls: network.redisUrls, maxTtlMs: ttlMs });
  const key = act.resource("keys/master");

  await network.loses("n4", "n5");
  const older = await one.acquires(key, { ttlMs });
  await forgets(act, fleet);
  const two = await act.worker("worker 2", { redisUrls: fleet.urls, maxTtlMs: ttlMs });
  const early = await two.tries(key);
  act.expect("worker 2 is refused", early.ok, false);
  act.expect("n3 has no vote", early.ok ? "granted" : early.quarantined, 1);
  act.expect("worker 1 is still the holder", await one.believesToHold(key));
  await one.releases(key);
  const newer = await two.acquires(key);
  act.expect("worker 2 is next, with a greater token, from the four others", newer.token > older.token);
}

async function withoutQuarantine(act: ActRun): Promise<void> {
  const fleet = await PrivateFleet.start(act);
  const network = await fleet.networkOf("worker 1");
  const one = await act.worker("worker 1", { redisUrls: network.redisUrls });
  const key = act.resource("keys/master");
  const lock = { ttlMs: 30_000, nodeTimeoutMs: 5_000 };

  await network.loses("n4", "n5");
  const two = await act.worker("worker 2", { redisUrls: fleet.urls });
  await one.takesPlainLock(key, { ...lock, urls: network.redisUrls });
  act.expect("worker 2 does not get it", await two.takesPlainLock(key, { ...lock, urls: fleet.urls }), false);
  await forgets(act, fleet);
  await two.waitsForPlainLock(key, { ...lock, urls: fleet.urls });
  const both = [await one.believesToHold(key), await two.believesToHold(key)];
  act.expectDamage("n3 gave the lock away twice: two holders", both, [true, true]);
}

export const nodeAmnesia: Scenario = {
  name: "node-amnesia",
  about: "a node restarts empty while the lock is held",
  acts: [
    { title: "with quarantine", actors, route: "gateway", play: withQuarantine },
    { title: "control: Redlock, which believes the empty node", actors, route: "gateway", play: withoutQuarantine },
  ],
  proven: "A node that may have forgotten a grant has no vote until that grant is over. Where it votes at once, two hold the lock.",
};
