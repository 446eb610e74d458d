// The store is restored from a backup, and its fences with it: what they were when the backup was
// made. The lock still knows every token. A worker that was paused before all this wakes up.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { gatewayProgram, PostgresServer, queryAt } from "@palisade/testkit";
import type { ActRun, Differing, Scenario } from "../engine/act-run.js";
import { startGateway } from "../engine/environment.js";
import type { Worker } from "../engine/worker-handle.js";
import type { Resource } from "../worker/protocol.js";
import { codeOf, fenced, type Outcome } from "./late-write.js";

interface Parts {
  readonly ledger: Resource;
  readonly two: Worker;
  readonly address: Differing;
  readonly databaseUrl: string;
  isReady(): Promise<boolean>;
  /** Worker 1 wakes up, and writes with the token that it was paused with. */
  wakeUp(): Promise<Outcome>;
}

/** Backup, worker 2's write under the newer token, restore. */
async function restored(act: ActRun, restoreCheck: "on" | "off"): Promise<Parts> {
  const server = act.own(await PostgresServer.start({ provider: "local" }));
  const { redisUrls } = act.environment;
  const gateway = act.own(await startGateway({ redisUrls, databaseUrl: server.url, restoreCheck }));
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
  act.step("remarks", "gateway", { text: "palisade-gateway recover raises the fences to what the lock knows" });
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
