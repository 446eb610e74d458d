// One Redis with a replica looks as safe as several. Replication is asynchronous: the primary can
// die with a lock that its replica never heard of.
import { type FaultProxy, RedisFleet, type RedisNode } from "@palisade/testkit";
import type { ActRun, Scenario } from "../engine/act-run.js";
import { codeOf, expectLoss, expectRefusal, fenced, unfenced } from "./late-write.js";
import { PrivateFleet } from "./private-fleet.js";

interface Replicated {
  readonly primary: RedisNode;
  readonly replica: RedisNode;
  /** Between the two. */
  readonly link: FaultProxy;
}

async function replicated(act: ActRun): Promise<Replicated> {
  const pair = act.own(await RedisFleet.start({ nodes: 2 }));
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
