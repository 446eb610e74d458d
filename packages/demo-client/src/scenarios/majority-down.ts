// Nodes die, and networks split. A lock that only a majority grants cannot be had on the smaller
// side then, and the error says so: that is the price of a single holder.

import type { ActRun, Scenario } from "../engine/act-run.js";
import { codeOf } from "./late-write.js";
import { PrivateFleet } from "./private-fleet.js";

const actors = ["worker 1", "worker 2", "lock"];

async function nodesDie(act: ActRun): Promise<void> {
  const seat = act.resource("seats/12A");
  const fleet = await PrivateFleet.start(act);
  const one = await act.worker("worker 1", { redisUrls: fleet.urls });

  await Promise.all(["n4", "n5"].map((name) => fleet.node(name).kill()));
  act.step("breaks", "lock", { text: "n4 and n5 die: three of five are left" });
  const older = await one.acquires(seat);
  await one.releases(seat);

  await fleet.node("n3").kill();
  act.step("breaks", "lock", { text: "n3 dies: two of five are left" });
  const refused = await one.tries(seat);
  act.expect("no worker gets the lock from two nodes of five, and the error says why", codeOf(refused), "LOCK_NO_QUORUM");

  await fleet.node("n3").restart();
  act.step("remarks", "lock", { text: "n3 is back, and its log with it" });
  const newer = await one.acquires(seat);
  act.expect("the lock is to be had again, with a greater token", newer.token > older.token);
}

async function networkSplits(act: ActRun): Promise<void> {
  const seat = act.resource("seats/12A");
  const fleet = await PrivateFleet.start(act);
  const [networkOfOne, networkOfTwo] = [await fleet.networkOf("worker 1"), await fleet.networkOf("worker 2")];
  // Shorter than elsewhere: on this side most nodes will be silent.
  const one = await act.worker("worker 1", { redisUrls: networkOfOne.redisUrls, nodeTimeoutMs: 500 });
  const two = await act.worker("worker 2", { redisUrls: networkOfTwo.redisUrls });
  await networkOfOne.loses("n3", "n4", "n5");
  await networkOfTwo.loses("n1", "n2");

  const smaller = await one.tries(seat);
  const larger = await two.acquires(seat);
  act.expect("on the smaller side it is not to be had", codeOf(smaller), "LOCK_NO_QUORUM");
  act.expect("on the larger side it is", larger.token > 0);
}

async function anyNodeWillDo(act: ActRun): Promise<void> {
  const seat = act.resource("seats/12A");
  const fleet = await PrivateFleet.start(act);
  const [networkOfOne, networkOfTwo] = [await fleet.networkOf("worker 1"), await fleet.networkOf("worker 2")];
  const one = await act.worker("worker 1", { redisUrls: networkOfOne.redisUrls });
  const two = await act.worker("worker 2", { redisUrls: networkOfTwo.redisUrls });
  await networkOfOne.loses("n3", "n4", "n5");
  await networkOfTwo.loses("n1", "n2");

  const lock = { ttlMs: 30_000, quorum: 1, nodeTimeoutMs: 5_000 };
  await one.takesPlainLock(seat, { ...lock, urls: networkOfOne.redisUrls });
  await two.takesPlainLock(seat, { ...lock, urls: networkOfTwo.redisUrls });
  const both = [await one.believesToHold(seat), await two.believesToHold(seat)];
  act.expectDamage("both sides have it: two holders", both, [true, true]);
}

export const majorityDown: Scenario = {
  name: "majority-down",
  about: "nodes die and networks split; only a majority can grant",
  acts: [
    { title: "nodes die", actors, route: "gateway", play: nodesDie },
    { title: "the network splits", actors, route: "gateway", play: networkSplits },
    { title: "control: the network splits, and any node will do", actors, route: "gateway", play: anyNodeWillDo },
  ],
  proven:
    "Two dead nodes of five do not matter; with three dead no worker gets the lock, and the error says why. Where any node will do, a split network has two holders.",
};
