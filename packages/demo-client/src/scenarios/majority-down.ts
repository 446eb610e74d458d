// Nodes die, and networks split. A lock that only a majority can grant is not to be had then on the smaller side, and says so; that is the price of one holder.
import { PrivateFleet } from "../private-fleet.js";
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";

const actors = ["worker 1", "worker 2", "lock"];

async function nodesDie(story: Story): Promise<void> {
  const seat = story.resource("seats/12A");
  const fleet = await PrivateFleet.start(story);
  const one = await story.worker("worker 1", { redisUrls: fleet.urls });

  await Promise.all(["n4", "n5"].map((name) => fleet.node(name).kill()));
  story.step("breaks", "lock", { text: "n4 and n5 die: three of five are left" });
  const older = await one.acquires(seat);
  await one.releases(seat);

  await fleet.node("n3").kill();
  story.step("breaks", "lock", { text: "n3 dies: two of five are left" });
  const refused = await one.tries(seat);
  story.expect("nobody gets the lock from two nodes of five, and is told why", refused.ok ? "granted" : refused.code, "LOCK_NO_QUORUM");

  await fleet.node("n3").restart();
  story.step("remarks", "lock", { text: "n3 is back, and its log with it" });
  const newer = await one.acquires(seat);
  story.expect("the lock is to be had again, with a greater token", newer.token > older.token);
}

async function networkSplits(story: Story): Promise<void> {
  const seat = story.resource("seats/12A");
  const fleet = await PrivateFleet.start(story);
  const [wayOfOne, wayOfTwo] = [await fleet.wayOf("worker 1"), await fleet.wayOf("worker 2")];
  // Not as patient as elsewhere: on this side most nodes will be silent.
  const one = await story.worker("worker 1", { ...wayOfOne.surroundings, nodeTimeoutMs: 500 });
  const two = await story.worker("worker 2", wayOfTwo.surroundings);
  await wayOfOne.losesSightOf("n3", "n4", "n5");
  await wayOfTwo.losesSightOf("n1", "n2");

  const smaller = await one.tries(seat);
  const larger = await two.acquires(seat);
  story.expect("on the smaller side it is not to be had", smaller.ok ? "granted" : smaller.code, "LOCK_NO_QUORUM");
  story.expect("on the larger side it is", larger.token > 0);
}

async function anyNodeWillDo(story: Story): Promise<void> {
  const seat = story.resource("seats/12A");
  const fleet = await PrivateFleet.start(story);
  const [wayOfOne, wayOfTwo] = [await fleet.wayOf("worker 1"), await fleet.wayOf("worker 2")];
  const one = await story.worker("worker 1", wayOfOne.surroundings);
  const two = await story.worker("worker 2", wayOfTwo.surroundings);
  await wayOfOne.losesSightOf("n3", "n4", "n5");
  await wayOfTwo.losesSightOf("n1", "n2");

  const lock = { ttlMs: 30_000, quorum: 1, nodeTimeoutMs: 5_000 };
  await one.takesClassic(seat, { ...lock, urls: wayOfOne.surroundings.redisUrls });
  await two.takesClassic(seat, { ...lock, urls: wayOfTwo.surroundings.redisUrls });
  const both = [await one.believesToHold(seat), await two.believesToHold(seat)];
  story.expect("both sides have it: two holders", both, [true, true]);
}

export const majorityDown: Scenario = {
  name: "majority-down",
  about: "nodes die and networks split; only a majority can grant",
  acts: [
    { title: "nodes die", actors, door: "gateway", play: nodesDie },
    { title: "the network splits", actors, door: "gateway", play: networkSplits },
    { title: "control: the network splits, and any node will do", actors, door: "gateway", play: anyNodeWillDo },
  ],
  proven:
    "Two dead nodes of five do not matter; with three dead nobody gets the lock, and is told why. Where any node will do, a split network has two holders.",
};
