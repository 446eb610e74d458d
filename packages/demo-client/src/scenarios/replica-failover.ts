// One Redis with a replica looks as safe as several. Replication is asynchronous: the primary can die with a lock that its replica never heard of.
import { type FaultProxy, RedisFleet, type RedisNode } from "@palisade/testkit";
import { PrivateFleet } from "../private-fleet.js";
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";

/** n2 follows n1 through a link of its own. */
async function replicated(story: Story): Promise<{ readonly primary: RedisNode; readonly replica: RedisNode; readonly link: FaultProxy }> {
  const pair = story.own(await RedisFleet.start({ nodes: 2 }));
  const [primary, replica] = [pair.node("n1"), pair.node("n2")];
  const link = await primary.anotherWay();
  await replica.cli("REPLICAOF", link.host, link.port);
  while (!String(await replica.cli("INFO", "replication")).includes("master_link_status:up")) await story.passes(10);
  return { primary, replica, link };
}

async function oneRedisWithReplica(story: Story): Promise<void> {
  const invoice = story.resource("invoices/8");
  const { primary, replica, link } = await replicated(story);
  const [one, two] = await story.workers("worker 1", "worker 2");
  const lock = { ttlMs: 30_000, nodeTimeoutMs: 5_000 };

  link.holdReplies();
  await one.takesClassic(invoice, { ...lock, urls: [primary.url] });
  story.expect("worker 2 does not get it", await two.takesClassic(invoice, { ...lock, urls: [primary.url] }), false);
  await primary.kill();
  await replica.cli("REPLICAOF", "NO", "ONE");
  story.step("breaks", "lock", { text: "the primary dies before its replica heard of the lock; the replica is promoted" });
  await two.takesClassic(invoice, { ...lock, urls: [replica.url] });
  const both = [await one.believesToHold(invoice), await two.believesToHold(invoice)];
  story.expect("two holders", both, [true, true]);

  await two.writes(invoice, { paid: true, by: two.name });
  const late = await one.writes(invoice, { paid: false, by: one.name });
  story.expect("nobody refuses worker 1's write", late.ok);
  story.expect("worker 2's update is lost", (await story.stored(invoice))?.by, "worker 1");
}

async function independentMasters(story: Story): Promise<void> {
  const invoice = story.resource("invoices/8");
  const fleet = await PrivateFleet.start(story);
  const gateway = await fleet.gateway();
  const one = await story.worker("worker 1", { redisUrls: fleet.urls, ...gateway });
  const two = await story.worker("worker 2", { redisUrls: fleet.urls, ...gateway });

  await one.acquires(invoice, { ttlMs: 30_000 });
  await fleet.node("n1").kill();
  story.step("breaks", "lock", { text: "n1 dies; the others know of the lock" });
  const early = await two.tries(invoice);
  story.expect("worker 2 is told that the lock is held", early.ok ? "granted" : early.code, "LOCK_HELD");

  await one.releases(invoice);
  const older = await one.acquires(invoice);
  const pending = await one.isAboutToWrite(invoice, { paid: false, by: one.name });
  await one.isStopped();
  const newer = await two.acquires(invoice);
  story.expect("worker 2 is next, with a greater token", newer.token > older.token);
  await two.looksAt(invoice);
  await two.writes(invoice, { paid: true, by: two.name });
  one.wakesUp();
  const late = await pending.answer;
  story.expect("a late write of worker 1 is refused", late.ok ? "stored" : late.code, "fencing_token_stale");
  story.expect("what is stored is worker 2's", (await story.stored(invoice, gateway))?.by, "worker 2");
}

export const replicaFailover: Scenario = {
  name: "replica-failover",
  about: "a Redis dies before its replica heard of the lock",
  acts: [
    {
      title: "control: one Redis with an asynchronous replica",
      actors: ["worker 1", "worker 2", "lock", "store"],
      door: "postgres",
      play: oneRedisWithReplica,
    },
    {
      title: "five independent masters, and the fence",
      actors: ["worker 1", "worker 2", "lock", "gateway", "store"],
      door: "gateway",
      play: independentMasters,
    },
  ],
  proven:
    "A promoted replica gives the same lock to a second worker, and an update is lost. Of independent masters one may die: the others remember, and the fence does.",
};
