// Who releases late must not release what has become somebody else's: A's lease ran out, B holds the lock, and A comes back to clean up.
import type { ClassicOptions } from "../classic-lock.js";
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";

const actors = ["worker A", "worker B", "worker C", "lock"];

async function withPalisade(story: Story): Promise<void> {
  const file = story.resource("files/report.csv");
  const [a, b, c] = await story.workers("worker A", "worker B", "worker C");
  await a.acquires(file);
  await b.acquires(file, { ttlMs: 30_000 }); // waits until A's lease is over, and is still at work when C comes
  await a.releases(file);
  const third = await c.tries(file);
  story.expect("worker C is told that the lock is held", third.ok ? "granted" : third.code, "LOCK_HELD");
  story.expect("worker B still holds it", await b.believesToHold(file));
}

function byHand(check: "owner" | "nobody") {
  return async (story: Story): Promise<void> => {
    const file = story.resource("files/report.csv");
    const [url = ""] = story.stage.redisUrls;
    const forA: ClassicOptions = { urls: [url], ttlMs: story.ttlMs / 4, nodeTimeoutMs: 5_000 };
    // B must still be at work when C comes, however slow this machine is.
    const forB: ClassicOptions = { urls: [url], ttlMs: 60_000, nodeTimeoutMs: 5_000 };
    const [a, b, c] = await story.workers("worker A", "worker B", "worker C");
    await a.waitsForClassic(file, forA);
    await b.waitsForClassic(file, forB);
    story.expect("worker C does not get in", await c.takesClassic(file, forB), false);
    const removed = await a.releasesClassic(file, check);
    const third = await c.takesClassic(file, forB);
    story.expect("worker B is still at work", await b.believesToHold(file));
    if (check === "nobody") {
      story.expect("worker A has removed worker B's lock", removed, 1);
      story.expect("now worker C gets in as well: two at work", third);
    } else {
      story.expect("worker A has removed nothing", removed, 0);
      story.expect("worker C still does not get in", third, false);
    }
  };
}

export const ownerCheck: Scenario = {
  name: "owner-check",
  about: "a late release must not free the lock of the next holder",
  acts: [
    { title: "with Palisade", actors, door: "gateway", play: withPalisade },
    { title: "by hand on one Redis: delete the key if it is mine", actors, door: "postgres", play: byHand("owner") },
    { title: "control: by hand, DEL", actors, door: "postgres", play: byHand("nobody") },
  ],
  proven: "A release removes only what is its own. Without the check of the owner, A frees B's lock and two work at once.",
};
