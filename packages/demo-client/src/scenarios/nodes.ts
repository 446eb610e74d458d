// Nodes die, forget, show another time, or are others than was agreed; and networks split.

import { type FaultProxy, RedisFleet, type RedisNode } from "@palisade/testkit";
import type { ActRun, Differing, Scenario, Worker } from "../engine/act.js";
import type { Resource } from "../worker/protocol.js";
import { codeOf, expectLoss, expectRefusal, fenced, lockOnly, type Outcome, PrivateFleet, unfenced } from "./staging.js";

// The clock of one Redis node jumps forward, and a key that should live for seconds is gone. No
// lock that relies on clocks keeps two holders apart then; the tokens rely on none, and still tell
// which lease came later.

async function clockLeaps(act: ActRun): Promise<Outcome> {
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
      expectRefusal(act, await clockLeaps(act), "worker 1, who came first, is told that its token is stale"),
    ),
    unfenced("control: straight into a table", async (act) => expectLoss(act, await clockLeaps(act), "worker 1's write is not refused")),
  ],
  proven: "A leaping clock can make two holders, and the fence still refuses the earlier one. Without it worker 2's update is lost.",
};

// One node restarts without its memory while the lock is held. If it voted, it would grant again
// what it has granted already, and with two others make a second majority.

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
  acts: [lockOnly("with quarantine", withQuarantine), lockOnly("control: Redlock, which believes the empty node", withoutQuarantine)],
  proven: "A node that may have forgotten a grant has no vote until that grant is over. Where it votes at once, two hold the lock.",
};

// One Redis with a replica looks as safe as several. Replication is asynchronous: the primary can
// die with a lock that its replica never heard of.

interface Replicated {
  readonly primary: RedisNode;
  readonly replica: RedisNode;
  /** Between the two. */
  readonly link: FaultProxy;
}

async function replicated(act: ActRun): Promise<Replicated> {
  const pair = act.use(await RedisFleet.start({ nodes: 2 }));
  const [primary, replica] = [pair.node("n1"), pair.node("n2")];
  const link = await primary.anotherWay();
  await replica.cli("REPLICAOF", link.host, link.port);
  while (!String(await replica.cli("INFO", "replication")).includes("master_link_status:up")) await act.passes(10);
  return { primary, replica, link };
}

async function oneRedisWithReplica(act: ActRun): Promise<void> {
  const invoice = act.resource("invoices/8");
  const { primary, replica, link } = await replicated(act);
  const [one, two] = await act.workers("worker 1", "worker 2");
  const lock = { ttlMs: 30_000, nodeTimeoutMs: 5_000 };

  link.holdReplies();
  await one.takesPlainLock(invoice, { ...lock, urls: [primary.url] });
  act.expect("worker 2 does not get it", await two.takesPlainLock(invoice, { ...lock, urls: [primary.url] }), false);
  await primary.kill();
  await replica.cli("REPLICAOF", "NO", "ONE");
  act.step("breaks", "lock", { text: "the primary dies before its replica heard of the lock; the replica is promoted" });
  await two.takesPlainLock(invoice, { ...lock, urls: [replica.url] });
  const both = [await one.believesToHold(invoice), await two.believesToHold(invoice)];
  act.expectDamage("two holders", both, [true, true]);

  await two.writes(invoice, { paid: true, by: two.name });
  const late = await one.writes(invoice, { paid: false, by: one.name });
  const stored = await act.stored(invoice);
  expectLoss(act, { late, stored }, "worker 1's write is not refused");
}

async function independentMasters(act: ActRun): Promise<void> {
  const invoice = act.resource("invoices/8");
  const fleet = await PrivateFleet.start(act);
  const gateway = await fleet.gateway();
  const one = await act.worker("worker 1", { redisUrls: fleet.urls, ...gateway });
  const two = await act.worker("worker 2", { redisUrls: fleet.urls, ...gateway });

  await one.acquires(invoice, { ttlMs: 30_000 });
  await fleet.node("n1").kill();
  act.step("breaks", "lock", { text: "n1 dies; the others know of the lock" });
  const early = await two.tries(invoice);
  act.expect("worker 2 is told that the lock is held", codeOf(early), "LOCK_HELD");

  await one.releases(invoice);
  const older = await one.acquires(invoice);
  const pending = await one.isAboutToWrite(invoice, { paid: false, by: one.name });
  await one.isStopped();
  const newer = await two.acquires(invoice);
  act.expect("worker 2 is next, with a greater token", newer.token > older.token);
  await two.looksAt(invoice);
  await two.writes(invoice, { paid: true, by: two.name });
  one.wakesUp();
  const late = await pending.answer;
  const stored = await act.stored(invoice, gateway);
  expectRefusal(act, { late, stored }, "a late write of worker 1 is refused");
}

export const replicaFailover: Scenario = {
  name: "replica-failover",
  about: "a Redis dies before its replica heard of the lock",
  acts: [
    unfenced("control: one Redis with an asynchronous replica", oneRedisWithReplica),
    fenced("five independent masters, and the fence", independentMasters),
  ],
  proven:
    "A promoted replica gives the same lock to a second worker, and an update is lost. Of independent masters one may die: the others remember, and the fence does.",
};

// Nodes die, and networks split. A lock that only a majority grants cannot be had on the smaller
// side then, and the error says so: that is the price of a single holder.

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
    lockOnly("nodes die", nodesDie),
    lockOnly("the network splits", networkSplits),
    lockOnly("control: the network splits, and any node will do", anyNodeWillDo),
  ],
  proven:
    "Two dead nodes of five do not matter; with three dead no worker gets the lock, and the error says why. Where any node will do, a split network has two holders.",
};

// Half of the workers are configured with n1, n2, n3, the other half with n1, n2, n4: a replacement
// that reached only half of them, or a typo. Each list has a majority without the other's. Votes
// count for the members that the nodes have stored.

/** No lease may run out here before it was looked at. */
const MEMBERS_TTL_MS = 30_000;

interface Prepared {
  readonly job: Resource;
  readonly right: Worker;
  readonly wrong: Worker;
  /** Each worker's own list, by its own way. */
  readonly lists: { readonly right: readonly string[]; readonly wrong: readonly string[] };
}

async function prepare(act: ActRun): Promise<Prepared> {
  const fleet = await PrivateFleet.start(act);
  const network = await fleet.networkOf("worker 1");
  const [n1 = "", n2 = "", , n4 = ""] = fleet.urls;
  const lists = { right: network.redisUrls.slice(0, 3), wrong: [n1, n2, n4] };
  const gateway: Differing = await fleet.gateway(3);
  const config = { ...gateway, maxTtlMs: MEMBERS_TTL_MS };
  // The first one founds the fleet of n1, n2 and n3.
  const right = await act.worker("worker 1", { ...config, redisUrls: lists.right });
  act.step("breaks", "lock", { text: "worker 2 is given another server than worker 1 as its third node" });
  const wrong = await act.worker("worker 2", { ...config, redisUrls: lists.wrong });
  await network.loses("n2");
  return { job: act.resource("jobs/billing"), right, wrong, lists };
}

async function withMembers(act: ActRun): Promise<void> {
  const { job, right, wrong } = await prepare(act);
  const older = await right.acquires(job, { ttlMs: MEMBERS_TTL_MS });
  act.expect("worker 2 is refused", codeOf(await wrong.tries(job)), "LOCK_HELD");
  act.expect("worker 1 is still the holder", await right.believesToHold(job));
  await right.looksAt(job);
  await right.writes(job, { run: "Monday", by: right.name });
  await right.releases(job);
  const newer = await wrong.acquires(job);
  act.expect("worker 2 is next, with a greater token", newer.token > older.token);
  const { document } = await wrong.looksAt(job);
  act.expect("it sees what worker 1 has written", document?.by, right.name);
}

async function withoutMembers(act: ActRun): Promise<void> {
  const { job, right, wrong, lists } = await prepare(act);
  const lock = { ttlMs: MEMBERS_TTL_MS, nodeTimeoutMs: 5_000 };
  await right.takesPlainLock(job, { ...lock, urls: lists.right });
  await wrong.takesPlainLock(job, { ...lock, urls: lists.wrong });
  const both = [await right.believesToHold(job), await wrong.believesToHold(job)];
  act.expectDamage("each has a majority of its own list: two holders", both, [true, true]);
}

export const otherMembers: Scenario = {
  name: "other-members",
  about: "half of the workers are configured with another node in the place of a member",
  acts: [
    lockOnly("with the members that the nodes have stored", withMembers),
    lockOnly("control: Redlock, which counts any node of its list", withoutMembers),
  ],
  proven:
    "Two lists of nodes can each have a majority. Votes count for the members that the nodes have stored, so one list does; where each counts its own, two hold the lock.",
};
