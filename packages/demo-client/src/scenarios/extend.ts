// A job takes longer than its lease: renewal keeps the lock for it while the nodes can be reached,
// and tells it in time when they no longer can.

import type { ActRun, Scenario } from "../engine/act-run.js";
import type { Worker } from "../engine/worker-handle.js";
import type { Granted, Resource } from "../worker/protocol.js";
import { PrivateFleet } from "./private-fleet.js";

const actors = ["worker 1", "worker 2", "lock"];
const MAX_TTL_MS = 15_000;

interface Renewal {
  readonly job: Resource;
  readonly one: Worker;
  readonly two: Worker;
  readonly ttlMs: number;
}

/** Worker 1 is renewed until its first ttl is over, and worker 2 is refused then. */
async function outlivesItsTtl(act: ActRun, { job, one, two, ttlMs }: Renewal): Promise<Granted> {
  const older = await one.acquires(job, { ttlMs, renew: true });
  const startedAt = performance.now();
  let outcome: "renewed" | "lost" = "renewed";
  while (outcome === "renewed" && performance.now() - startedAt < 1.2 * ttlMs) outcome = await one.isRenewed();
  const early = outcome === "renewed" ? await two.tries(job) : undefined;
  // On a machine that stands still for longer than the lease lasts, no renewal can come in time:
  // this is tried again with a longer lease. Two holders at once would not be excused.
  const isLost = outcome === "lost" || (early?.ok === true && !(await one.believesToHold(job)));
  if (isLost && ttlMs < MAX_TTL_MS) {
    const text = "lost its lease, perhaps because this machine stood still: once more, with a longer one";
    act.step("remarks", one.name, { text });
    if (early?.ok === true) await two.releases(job);
    return await outlivesItsTtl(act, { job, one, two, ttlMs: 3 * ttlMs });
  }
  act.expect("worker 1 is renewed beyond its first ttl", outcome, "renewed");
  act.expect("worker 2 is refused when the first ttl is long over", early?.ok === false ? early.code : "granted", "LOCK_HELD");
  return older;
}

async function renewed(act: ActRun): Promise<void> {
  const job = act.resource("jobs/long");
  const fleet = await PrivateFleet.start(act);
  const network = await fleet.networkOf("worker 1");
  // Short: some nodes will be silent, and that has to be known before the lease is over.
  const one = await act.worker("worker 1", { redisUrls: network.redisUrls, nodeTimeoutMs: 250 });
  const two = await act.worker("worker 2", { redisUrls: fleet.urls });

  const older = await outlivesItsTtl(act, { job, one, two, ttlMs: Math.max(1_500, 2 * act.ttlMs) });
  const learns = one.learnsOfLoss();
  await network.loses("n3", "n4", "n5");
  const reason = await learns;
  act.expect("worker 1 is told that its lease could not be kept", reason === "unreachable" || reason === "expired");
  act.expect("it does not take itself for the holder any more", await one.believesToHold(job), false);
  const newer = await two.acquires(job);
  act.expect("worker 2 is next, with a greater token", newer.token > older.token);
}

async function once(act: ActRun): Promise<void> {
  const job = act.resource("jobs/long");
  const [one, two] = await act.workers("worker 1", "worker 2");
  await one.acquires(job);
  act.step("remarks", one.name, { text: "begins a job that takes longer than its lease" });
  await two.acquires(job, { ttlMs: 30_000 });
  act.expectDamage("worker 1's lease ended in the middle of its job", await one.believesToHold(job), false);
  act.expectDamage("worker 2 has begun meanwhile", await two.believesToHold(job));
  act.step("remarks", one.name, { text: "finishes its job" });
}

export const extend: Scenario = {
  name: "extend",
  about: "renewal keeps a long job's lock, and tells the job when it no longer can",
  acts: [
    { title: "renewed", actors, route: "gateway", play: renewed },
    { title: "control: not renewed", actors, route: "gateway", play: once },
  ],
  proven:
    "A renewed lease outlives its ttl, and its holder is told when it cannot be kept. Without renewal the next worker begins in the middle of the job.",
};
