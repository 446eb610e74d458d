// The clock of one Redis node jumps forward, and a key that should live for seconds is gone. No
// lock that relies on clocks keeps two holders apart then; the tokens rely on none, and still tell
// which lease came later.
import type { ActRun, Scenario } from "../engine/act-run.js";
import { codeOf, expectLoss, expectRefusal, fenced, type Outcome, unfenced } from "./late-write.js";
import { PrivateFleet } from "./private-fleet.js";

async function run(act: ActRun): Promise<Outcome> {
  const fleet = await PrivateFleet.start(act);
  const gateway = await fleet.gateway();
  const network = await fleet.networkOf("worker 1");
  const one = await act.worker("worker 1", { redisUrls: network.redisUrls, ...gateway });
  const two = await act.worker("worker 2", { redisUrls: fleet.urls, ...gateway });
  const account = act.resource("accounts/17");

  await network.loses("n4", "n5");
  await one.acquires(account, { ttlMs: 30_000 });
  const early = await two.tries(account);
  await fleet.node("n3").shiftClock(60_000);
  act.step("breaks", "lock", { text: "the clock of n3 leaps forward by a minute: there the lease is over" });
  await two.acquires(account, { ttlMs: 30_000 });
  const twoHolders = (await one.believesToHold(account)) && (await two.believesToHold(account));
  await two.looksAt(account);
  await two.writes(account, { balance: 70, by: two.name });
  const late = await one.writes(account, { balance: 100, by: one.name });
  const stored = await act.stored(account, gateway);
  act.expect("before the leap the lock was held", codeOf(early), "LOCK_HELD");
  act.expect("both believe that they hold the lock", twoHolders);
  return { late, stored };
}

export const clockJump: Scenario = {
  name: "clock-jump",
  about: "the clock of a Redis node leaps forward while the lock is held",
  acts: [
    fenced("through the gateway", async (act) =>
      expectRefusal(act, await run(act), "worker 1, who came first, is told that its token is stale"),
    ),
    unfenced("control: straight into a table", async (act) => expectLoss(act, await run(act), "worker 1's write is not refused")),
  ],
  proven: "A leaping clock can make two holders, and the fence still refuses the earlier one. Without it worker 2's update is lost.",
};
