// A job that takes longer than its lease: renewal keeps the lock for it while the nodes can be asked, and tells it, in time, when they no longer can.
import type { Actor } from "../actor.js";
import { PrivateFleet } from "../private-fleet.js";
import type { Scenario } from "../scenario.js";
import type { Resource, Story } from "../story.js";
import type { AcquireResult } from "../worker-protocol.js";

const actors = ["worker 1", "worker 2", "lock"];
const longestTtlMs = 15_000;

interface Attempt {
  readonly job: Resource;
  readonly one: Actor;
  readonly two: Actor;
  readonly ttlMs: number;
}

/** Worker 1 is renewed until its first ttl is over, and worker 2 is refused then. */
async function outlivesItsTtl(story: Story, { job, one, two, ttlMs }: Attempt): Promise<AcquireResult> {
  const older = await one.acquires(job, { ttlMs, renew: true });
  const startedAt = performance.now();
  let outcome: "renewed" | "lost" = "renewed";
  while (outcome === "renewed" && performance.now() - startedAt < 1.2 * ttlMs) outcome = await one.isRenewed();
  const early = outcome === "renewed" ? await two.tries(job) : undefined;
  // Nobody can renew on a machine that stands still for longer than the lease lasts: another try with a longer one. Two holders would be no such excuse.
  const isLost = outcome === "lost" || (early?.ok === true && !(await one.believesToHold(job)));
  if (isLost && ttlMs < longestTtlMs) {
    story.step("remarks", one.name, { text: "lost its lease, perhaps because this machine stood still: once more, with a longer one" });
    if (early?.ok === true) await two.releases(job);
    return await outlivesItsTtl(story, { job, one, two, ttlMs: 3 * ttlMs });
  }
  story.expect("worker 1 is renewed beyond its first ttl", outcome, "renewed");
  story.expect("worker 2 is refused when the first ttl is long over", early?.ok === false ? early.code : "granted", "LOCK_HELD");
  return older;
}

async function renewed(story: Story): Promise<void> {
  const job = story.resource("jobs/long");
  const fleet = await PrivateFleet.start(story);
  const way = await fleet.wayOf("worker 1");
  // Not as patient as elsewhere: some nodes will be silent, and that is to be known before the lease is over.
  const one = await story.worker("worker 1", { ...way.surroundings, nodeTimeoutMs: 250 });
  const two = await story.worker("worker 2", { redisUrls: fleet.urls });

  const older = await outlivesItsTtl(story, { job, one, two, ttlMs: Math.max(1_500, 2 * story.ttlMs) });
  const learns = one.learnsOfLoss();
  await way.losesSightOf("n3", "n4", "n5");
  const reason = await learns;
  story.expect("worker 1 is told that its lease could not be kept", reason === "unreachable" || reason === "expired");
  story.expect("it does not take itself for the holder any more", await one.believesToHold(job), false);
  const newer = await two.acquires(job);
  story.expect("worker 2 is next, with a greater token", newer.token > older.token);
}

async function once(story: Story): Promise<void> {
  const job = story.resource("jobs/long");
  const [one, two] = await story.workers("worker 1", "worker 2");
  await one.acquires(job);
  story.step("remarks", one.name, { text: "begins a job that takes longer than its lease" });
  await two.acquires(job, { ttlMs: 30_000 });
  story.expect("worker 1's lease ended in the middle of its job", await one.believesToHold(job), false);
  story.expect("worker 2 has begun meanwhile", await two.believesToHold(job));
  story.step("remarks", one.name, { text: "finishes its job" });
}

export const extend: Scenario = {
  name: "extend",
  about: "renewal keeps a long job's lock, and tells the job when it no longer can",
  acts: [
    { title: "renewed", actors, door: "gateway", play: renewed },
    { title: "control: not renewed", actors, door: "gateway", play: once },
  ],
  proven:
    "A renewed lease outlives its ttl, and its holder is told when it cannot be kept. Without renewal the next worker begins in the middle of the job.",
};
