// A late release must not free the lock of the next holder: A's lease ran out, B holds the lock,
// and A comes back to release it.

import type { ActRun, Scenario } from "../engine/act-run.js";
import type { PlainLockOptions } from "../worker/plain-lock.js";
import { codeOf } from "./late-write.js";

const actors = ["worker A", "worker B", "worker C", "lock"];

async function withPalisade(act: ActRun): Promise<void> {
  const file = act.resource("files/report.csv");
  const [a, b, c] = await act.workers("worker A", "worker B", "worker C");
  await a.acquires(file);
  await b.acquires(file, { ttlMs: 30_000 }); // waits until A's lease is over, and is still at work when C comes
  await a.releases(file);
  const third = await c.tries(file);
  act.expect("worker C is told that the lock is held", codeOf(third), "LOCK_HELD");
  act.expect("worker B still holds it", await b.believesToHold(file));
}

function byHand(check: "owner" | "none") {
  return async (act: ActRun): Promise<void> => {
    const file = act.resource("files/report.csv");
    const [url = ""] = act.environment.redisUrls;
    const forA: PlainLockOptions = { urls: [url], ttlMs: act.ttlMs / 4, nodeTimeoutMs: 5_000 };
    // B must still be at work when C comes, however slow this machine is.
    const forB: PlainLockOptions = { urls: [url], ttlMs: 60_000, nodeTimeoutMs: 5_000 };
    const [a, b, c] = await act.workers("worker A", "worker B", "worker C");
    await a.waitsForPlainLock(file, forA);
    await b.waitsForPlainLock(file, forB);
    act.expect("worker C does not get in", await c.takesPlainLock(file, forB), false);
    const removed = await a.releasesPlainLock(file, check);
    const third = await c.takesPlainLock(file, forB);
    act.expect("worker B is still at work", await b.believesToHold(file));
    if (check === "none") {
      act.expectDamage("worker A has removed worker B's lock", removed, 1);
      act.expectDamage("now worker C gets in as well: two at work", third);
    } else {
      act.expect("worker A has removed nothing", removed, 0);
      act.expect("worker C still does not get in", third, false);
    }
  };
}

export const ownerCheck: Scenario = {
  name: "owner-check",
  about: "a late release must not free the lock of the next holder",
  acts: [
    { title: "with Palisade", actors, route: "gateway", play: withPalisade },
    { title: "by hand on one Redis: delete the key if it is mine", actors, route: "postgres", play: byHand("owner") },
    { title: "control: by hand, DEL", actors, route: "postgres", play: byHand("none") },
  ],
  proven: "A release removes only what is its own. Without the check of the owner, A frees B's lock and two work at once.",
};
