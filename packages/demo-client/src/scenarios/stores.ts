// The store fails over, or is restored from a backup, and the fence with it or not.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { addressOf, FaultProxy, gatewayProgram, PostgresPair, PostgresServer, queryAt } from "@palisade/testkit";
import type { ActRun, Differing, Scenario, Worker } from "../engine/act.js";
import { startGateway } from "../engine/environment.js";
import type { Resource } from "../worker/protocol.js";
import { codeOf, expectRefusal, fenced, type Outcome } from "./staging.js";

// The store fails over, and the fence is in it. A standby that did not have the last fence accepts
// what the primary would have refused; so an answer must wait for the standby.

interface Replicated {
  readonly one: Worker;
  readonly two: Worker;
  readonly ledger: Resource;
  readonly pair: PostgresPair;
  /** Of the gateway, before and after the failover. */
  readonly address: Differing;
  /** The primary dies for good; the standby takes over, behind a gateway at the same address. */
  failOver(): Promise<void>;
}

/** Worker 2 has taken over; what the primary writes from now on does not reach the standby. */
async function setUp(act: ActRun, replication: "sync" | "async"): Promise<Replicated> {
  const pair = act.use(await PostgresPair.start({ replication }));
  const { redisUrls } = act.environment;
  const durability = replication === "sync" ? "sync" : "local";
  // What the control loses would be noticed otherwise (restored-backup).
  const restoreCheck = replication === "sync" ? "on" : "off";
  const options = { redisUrls, databaseUrl: pair.primary.url, durability, restoreCheck } as const;
  const first = act.use(await startGateway(options));
  await pair.caughtUp();
  const proxy = await FaultProxy.start({ upstream: addressOf(first.url) });
  act.use(proxy);
  const address = { gatewayUrl: `http://${proxy.host}:${proxy.port}` };
  const one = await act.worker("worker 1", address);
  const two = await act.worker("worker 2", address);
  const ledger = act.resource("ledgers/2");
  await one.acquires(ledger);
  await two.acquires(ledger, { ttlMs: 30_000 });
  pair.replication.holdReplies();
  act.step("breaks", "store", { text: "what the primary writes gets stuck on its way to the standby" });
  const failOver = async (): Promise<void> => {
    await pair.primary.crash();
    await pair.promote();
    act.step("breaks", "store", { text: "the primary dies; the standby takes over" });
    const second = act.use(await startGateway({ redisUrls, databaseUrl: pair.standby.url, restoreCheck }));
    await proxy.serverUp(addressOf(second.url));
    proxy.cut();
  };
  return { one, two, ledger, pair, address, failOver };
}

async function synchronous(act: ActRun): Promise<void> {
  const { one, two, ledger, pair, address, failOver } = await setUp(act, "sync");
  const answer = two.writes(ledger, { sum: 2, by: two.name });
  // The primary has the write, and has sent it on.
  await pair.replication.until(({ replies }) => replies.waitingBytes > 0, 30_000);
  const early = await Promise.race([answer.then(() => "answered"), act.passes(Math.min(act.ttlMs / 2, 1_000)).then(() => "not answered")]);
  act.expect("worker 2 is not answered while only the primary knows", early, "not answered");
  pair.replication.deliver();
  act.step("remarks", "store", { text: "the standby has it, too" });
  act.expect("now worker 2 is answered", (await answer).ok);
  await failOver();
  const late = await one.writes(ledger, { sum: 1, by: one.name });
  const stored = await act.stored(ledger, address);
  expectRefusal(act, { late, stored }, "the standby knows the fence, and refuses worker 1");
}

async function asynchronous(act: ActRun): Promise<void> {
  const { one, two, ledger, address, failOver } = await setUp(act, "async");
  const written = await two.writes(ledger, { sum: 2, by: two.name });
  act.expect("worker 2 is answered at once", written.ok);
  await failOver();
  const late = await one.writes(ledger, { sum: 1, by: one.name });
  const stored = await act.stored(ledger, address);
  act.expectDamage("the standby never heard of the fence, and takes worker 1's write", late.ok);
  act.expectDamage("worker 2's update is lost, although it was answered", stored?.by, "worker 1");
}

export const storeFailover: Scenario = {
  name: "store-failover",
  about: "the store fails over to a standby, and the fence with it or not",
  acts: [fenced("synchronous replication", synchronous), fenced("control: asynchronous replication", asynchronous)],
  proven:
    "A write that is answered only when the standby has it keeps its fence through a failover. With asynchronous replication the fence is forgotten and an update lost.",
};

// The store is restored from a backup, and its fences with it: what they were when the backup was
// made. The lock still knows every token. A worker that was paused before all this wakes up.

interface Restored {
  readonly ledger: Resource;
  readonly two: Worker;
  readonly address: Differing;
  readonly databaseUrl: string;
  isReady(): Promise<boolean>;
  /** Worker 1 wakes up, and writes with the token that it was paused with. */
  wakeUp(): Promise<Outcome>;
}

/** Backup, worker 2's write under the newer token, restore. */
async function restored(act: ActRun, restoreCheck: "on" | "off"): Promise<Restored> {
  const server = act.use(await PostgresServer.start({ provider: "local" }));
  const { redisUrls } = act.environment;
  const gateway = act.use(await startGateway({ redisUrls, databaseUrl: server.url, restoreCheck }));
  const address = { gatewayUrl: gateway.url };
  const one = await act.worker("worker 1", address);
  const two = await act.worker("worker 2", address);
  const ledger = act.resource("ledgers/7");
  await one.acquires(ledger);
  await one.writes(ledger, { sum: 0, by: one.name });
  const pending = await one.isAboutToWrite(ledger, { sum: 1, by: one.name });
  await one.isStopped();
  await server.backUp();
  act.step("remarks", "store", { text: "a backup is made" });

  await two.acquires(ledger, { ttlMs: 60_000 });
  const before = await beatOf(server.url);
  act.expect("worker 2 is answered", (await two.writes(ledger, { sum: 2, by: two.name })).ok);
  // The gateway makes sure within a second that this can be missed.
  if (restoreCheck === "on") while ((await beatOf(server.url)) === before) await act.passes(20);
  await server.restoreBackup();
  act.step("breaks", "store", { text: "the database is lost, and the backup restored: it has never heard of worker 2's token" });
  return {
    ledger,
    two,
    address,
    databaseUrl: server.url,
    isReady: async () => (await fetch(`${gateway.adminUrl}/ready`)).ok,
    async wakeUp() {
      one.wakesUp();
      const late = await pending.answer;
      return { late, stored: await act.stored(ledger, address) };
    },
  };
}

async function beatOf(databaseUrl: string): Promise<string | undefined> {
  return (await queryAt<{ beat: string }>(databaseUrl, "select beat from palisade.lineage"))[0]?.beat;
}

async function withRecovery(act: ActRun): Promise<void> {
  const { ledger, two, address, databaseUrl, isReady, wakeUp } = await restored(act, "on");
  act.expect("the gateway notices, and is not ready", await isReady(), false);
  const env = { ...process.env, DATABASE_URL: databaseUrl, PALISADE_REDIS_URLS: act.environment.redisUrls.join(",") };
  const { stdout } = await promisify(execFile)(process.execPath, [gatewayProgram, "recover", "--reason", "restored from a backup"], {
    env,
  });
  const { raised } = JSON.parse(stdout) as { readonly raised: number };
  act.step("remarks", "gateway", { text: "npx @palisade/gateway recover raises the fences to what the lock knows" });
  act.expect("a fence was raised", raised > 0);
  act.expect("the gateway is ready again", await isReady());
  const { late } = await wakeUp();
  act.expect("worker 1 is told that its token is stale", codeOf(late), "fencing_token_stale");
  act.expect("worker 2, which still holds the lease, can write again", (await two.writes(ledger, { sum: 2, by: two.name })).ok);
  act.expect("what is stored is worker 2's", (await act.stored(ledger, address))?.by, "worker 2");
}

async function withoutRecovery(act: ActRun): Promise<void> {
  const { isReady, wakeUp } = await restored(act, "off");
  act.expectDamage("the gateway notices nothing", await isReady());
  const { late, stored } = await wakeUp();
  act.expectDamage("worker 1's write is stored, although a newer token was acknowledged before", late.ok);
  act.expectDamage("worker 1 has written under worker 2's lease", stored?.by, "worker 1");
}

export const restoredBackup: Scenario = {
  name: "restored-backup",
  about: "the store is restored from a backup, and a paused worker wakes up",
  acts: [fenced("the gateway waits for a recovery", withRecovery), fenced("control: nobody looks", withoutRecovery)],
  proven:
    "A restored backup has forgotten fences, and the lock has not: until they are raised again nothing is written. Without that a paused worker's token is accepted again.",
};
