// What a lease is worth to its holder: it has run out before it was read, it is renewed, it is another's.
import type { ActRun, Scenario, Worker } from "../engine/act.js";
import type { PlainLockOptions } from "../worker/leases.js";
import type { Granted, Resource } from "../worker/protocol.js";
import { codeOf, lockOnly, type Network, PrivateFleet } from "./staging.js";

// The nodes granted the lock, and their answers were on the way when the process stopped. When it
// goes on it reads five grants of a lease that ran out long ago.

// Longer than worker 1 stands still: it gets the answers, and only the time makes them useless.
const NODE_TIMEOUT_MS = 60_000;

interface Parts {
  readonly one: Worker;
  readonly two: Worker;
  /** Of worker 1. */
  readonly network: Network;
  readonly fleet: PrivateFleet;
}

async function setUp(act: ActRun): Promise<Parts> {
  const fleet = await PrivateFleet.start(act);
  const network = await fleet.networkOf("worker 1");
  const { redisUrls } = network;
  const one = await act.worker("worker 1", { redisUrls, nodeTimeoutMs: NODE_TIMEOUT_MS });
  const two = await act.worker("worker 2", { redisUrls: fleet.urls, ...(await fleet.gateway()) });
  return { one, two, network, fleet };
}

/** After worker 1 has asked: the nodes answer, and it stops before it has read the answers. */
async function stopBeforeItReads(act: ActRun, { one, network: { proxies } }: Parts): Promise<void> {
  await Promise.all(proxies.map((proxy) => proxy.until(({ replies }) => replies.waitingBytes > 0, NODE_TIMEOUT_MS)));
  act.step("remarks", "lock", { text: "all five nodes have granted; their answers are on the way" });
  await one.isStopped();
  for (const proxy of proxies) proxy.deliver();
}

async function withPalisade(act: ActRun): Promise<void> {
  const parts = await setUp(act);
  const { one, two, network } = parts;
  const paper = act.resource("papers/3");
  for (const proxy of network.proxies) proxy.holdReplies();
  const answer = one.tries(paper);
  await stopBeforeItReads(act, parts);
  await two.acquires(paper, { ttlMs: 30_000 });
  one.wakesUp();
  act.expect("worker 1 is not given a lease that is over", codeOf(await answer), "LOCK_TOO_SLOW");
  act.expect("worker 2 still holds it", await two.believesToHold(paper));
}

async function timeIgnored(act: ActRun): Promise<void> {
  const parts = await setUp(act);
  const { one, two, network, fleet } = parts;
  const paper = act.resource("papers/3");
  const lock = { ttlMs: act.ttlMs, elapsedTime: "ignored", nodeTimeoutMs: NODE_TIMEOUT_MS } as const;
  const lockOfOne = { ...lock, urls: network.redisUrls };
  // Connected before its network breaks.
  await one.connectsPlainLock(lockOfOne);
  for (const proxy of network.proxies) proxy.holdReplies();
  const taken = one.takesPlainLock(paper, lockOfOne);
  await stopBeforeItReads(act, parts);
  await two.waitsForPlainLock(paper, { ...lock, ttlMs: 30_000, urls: fleet.urls });
  one.wakesUp();
  act.expectDamage("worker 1 takes the old grants for a lease", await taken);
  act.expectDamage("worker 2 holds it as well: two holders", await two.believesToHold(paper));
}

export const repliesInFlight: Scenario = {
  name: "replies-in-flight",
  about: "the grants are read after the lease has run out",
  acts: [
    lockOnly("with Palisade", withPalisade),
    {
      title: "control: Redlock that does not look at the time",
      actors: ["worker 1", "worker 2", "lock"],
      route: "postgres",
      play: timeIgnored,
    },
  ],
  proven:
    "Grants that are read too late make no lease: the time counts from before the question left. Without that look at the clock there are two holders.",
};

// A job takes longer than its lease: renewal keeps the lock for it while the nodes can be reached,
// and tells it in time when they no longer can.

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

async function notRenewed(act: ActRun): Promise<void> {
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
  acts: [lockOnly("renewed", renewed), lockOnly("control: not renewed", notRenewed)],
  proven:
    "A renewed lease outlives its ttl, and its holder is told when it cannot be kept. Without renewal the next worker begins in the middle of the job.",
};

// A late release must not free the lock of the next holder: A's lease ran out, B holds the lock,
// and A comes back to release it.

const releasing = ["worker A", "worker B", "worker C", "lock"];

async function checkedRelease(act: ActRun): Promise<void> {
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
    { title: "with Palisade", actors: releasing, route: "gateway", play: checkedRelease },
    { title: "by hand on one Redis: delete the key if it is mine", actors: releasing, route: "postgres", play: byHand("owner") },
    { title: "control: by hand, DEL", actors: releasing, route: "postgres", play: byHand("none") },
  ],
  proven: "A release removes only what is its own. Without the check of the owner, A frees B's lock and two work at once.",
};
