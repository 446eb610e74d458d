// The clock of one Redis node leaps forward, and a key that should live for seconds is gone. No lock that trusts clocks can keep two holders apart then; the tokens,
// which trust none, still tell who came later.
import { PrivateFleet } from "../private-fleet.js";
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import type { Document, NotAcquired, WriteResult } from "../worker-protocol.js";

interface Ending {
  readonly early: NotAcquired | undefined;
  readonly twoHolders: boolean;
  readonly late: WriteResult;
  readonly stored: Document | null;
}

async function tell(story: Story): Promise<Ending> {
  const fleet = await PrivateFleet.start(story);
  const gateway = await fleet.gateway();
  const way = await fleet.wayOf("worker 1");
  const one = await story.worker("worker 1", { ...way.surroundings, ...gateway });
  const two = await story.worker("worker 2", { redisUrls: fleet.urls, ...gateway });
  const account = story.resource("accounts/17");

  await way.losesSightOf("n4", "n5");
  await one.acquires(account, { ttlMs: 30_000 });
  const tried = await two.tries(account);
  const early = tried.ok ? undefined : tried;
  await fleet.node("n3").shiftClock(60_000);
  story.step("breaks", "lock", { text: "the clock of n3 leaps forward by a minute: there the lease is over" });
  await two.acquires(account, { ttlMs: 30_000 });
  const twoHolders = (await one.believesToHold(account)) && (await two.believesToHold(account));
  await two.looksAt(account);
  await two.writes(account, { balance: 70, by: two.name });
  const late = await one.writes(account, { balance: 100, by: one.name });
  return { early, twoHolders, late, stored: await story.stored(account, gateway) };
}

export const clockJump: Scenario = {
  name: "clock-jump",
  about: "the clock of a Redis node leaps forward while the lock is held",
  acts: [
    {
      title: "through the gateway",
      actors: ["worker 1", "worker 2", "lock", "gateway", "store"],
      door: "gateway",
      async play(story) {
        const { early, twoHolders, late, stored } = await tell(story);
        story.expect("before the leap the lock was held", early?.code, "LOCK_HELD");
        story.expect("both believe that they hold the lock", twoHolders);
        story.expect("worker 1, who came first, is told that its token is stale", late.ok ? "stored" : late.code, "fencing_token_stale");
        story.expect("what is stored is worker 2's", stored?.by, "worker 2");
      },
    },
    {
      title: "control: straight into a table",
      actors: ["worker 1", "worker 2", "lock", "store"],
      door: "postgres",
      async play(story) {
        const { early, twoHolders, late, stored } = await tell(story);
        story.expect("before the leap the lock was held", early?.code, "LOCK_HELD");
        story.expect("both believe that they hold the lock", twoHolders);
        story.expect("nobody refuses worker 1's write", late.ok);
        story.expect("worker 2's update is lost", stored?.by, "worker 1");
      },
    },
  ],
  proven: "A leaping clock can make two holders, and the fence still refuses the earlier one. Without it worker 2's update is lost.",
};
