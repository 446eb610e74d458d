// A holder is late: it writes after another has taken over. Each story is told with the fence in front of
// the store, and without it.

import { addressOf, FaultProxy, queryAt } from "@palisade/testkit";
import type { ActRun, Differing, Scenario } from "../engine/act.js";
import type { BeforeWriting, Document } from "../worker/protocol.js";
import { codeOf, expectLoss, expectRefusal, expectTurns, fenced, type Leases, type Outcome, unfenced } from "./staging.js";

/** The documents that worker 1 writes late, and worker 2 in time. */
interface Writes {
  readonly resource: string;
  readonly late: Document;
  readonly inTime: Document;
}

interface Held {
  /** How worker 1 is kept from writing until worker 2 has written. */
  readonly by?: "being stopped" | "computing";
  readonly beforeWriting?: BeforeWriting;
  /** Whether worker 1 has read what it writes; worker 2 always has. */
  readonly reads?: boolean;
}

/** Worker 1 finds its lease good, and is held up before it writes until worker 2 has its turn and has written. */
async function heldUp(act: ActRun, { resource: shown, late, inTime }: Writes, held: Held): Promise<Outcome & Leases> {
  const { by = "being stopped", beforeWriting, reads = false } = held;
  const resource = act.resource(shown);
  const [one, two] = await act.workers("worker 1", "worker 2");

  const older = await one.acquires(resource);
  if (reads) await one.looksAt(resource);
  const pending = await one.isAboutToWrite(resource, { ...late, by: one.name }, beforeWriting);
  if (by === "being stopped") await one.isStopped();
  else act.step("stops", one.name, { text: "computes without a break: no timer of its own runs" });

  const newer = await two.acquires(resource);
  await two.looksAt(resource);
  await two.writes(resource, { ...inTime, by: two.name });

  if (by === "being stopped") one.wakesUp();
  else one.finishesComputing();
  const written = await pending.answer;
  const stored = await act.stored(resource);
  expectTurns(act, { older, newer });
  return { older, newer, late: written, stored };
}

// A worker is stopped between its last check and its write, and wakes after the end of its lease.

const pausedWorker = (act: ActRun) => heldUp(act, { resource: "orders/42", late: { status: "cancelled" }, inTime: { status: "paid" } }, {});

export const gcPause: Scenario = {
  name: "gc-pause",
  about: "a worker is paused past the end of its lease, wakes up and writes",
  acts: [
    fenced("through the gateway", async (act) => {
      const outcome = await pausedWorker(act);
      act.expect("the second lease has the greater token", outcome.newer.token > outcome.older.token);
      expectRefusal(act, outcome);
    }),
    unfenced("control: the same, straight into a table", async (act) => expectLoss(act, await pausedWorker(act))),
  ],
  proven: "With the fence: paid stays, and the late write is refused. Without it: paid is lost, under the same lock.",
};

// What Postgres offers without a fence: a version column, and the advisory lock of a session.

const report: Writes = { resource: "reports/7", late: { total: 1 }, inTime: { total: 2 } };

export const versionColumn: Scenario = {
  name: "version-column",
  about: "a version column instead of the fence: for a row that was read, and for one that was not",
  acts: [
    {
      ...unfenced("a row that its writer has read", async (act) => {
        const { late, stored } = await heldUp(act, report, { reads: true });
        act.expect("worker 1's write is refused: the version that it read is gone", codeOf(late), "version_changed");
        act.expect("what is stored is worker 2's", stored?.by, "worker 2");
      }),
      route: "version column",
    },
    {
      ...unfenced("control: a result that is stored without having read", async (act) => expectLoss(act, await heldUp(act, report, {}))),
      route: "version column",
    },
    fenced("the same through the gateway", async (act) => expectRefusal(act, await heldUp(act, report, {}))),
  ],
  proven:
    "A version column keeps a row right whose writer has read it. A write that read nothing has no version to compare: worker 2's update is lost, and only a token tells the late writer.",
};

/** Worker 1 holds the advisory lock of a session, and is stopped before it writes. */
async function stoppedInSession(act: ActRun) {
  const resource = act.resource(report.resource);
  const [one, two] = await act.workers("worker 1", "worker 2");
  const session = await one.locksSession(resource);
  const pending = await one.isAboutToWrite(resource, { ...report.late, by: one.name });
  await one.isStopped();
  const turnOfTwo = async (): Promise<void> => {
    while ((await two.locksSession(resource)) === 0) await act.passes(20);
    await two.looksAt(resource);
    await two.writes(resource, { ...report.inTime, by: two.name });
  };
  return { resource, one, two, session, pending, turnOfTwo };
}

export const advisoryLock: Scenario = {
  name: "advisory-lock",
  about: "an advisory lock of Postgres instead of a lease: while its session lasts, and when it ends first",
  acts: [
    unfenced("the session outlasts the pause", async (act) => {
      const { resource, one, two, pending, turnOfTwo } = await stoppedInSession(act);
      await act.passes(2 * act.ttlMs);
      act.expect("nobody else gets the lock while worker 1 stands still, however long that is", await two.locksSession(resource), 0);
      one.wakesUp();
      await pending.answer;
      await one.unlocksSession(resource);
      await turnOfTwo();
      act.expect("what is stored is worker 2's", (await act.stored(resource))?.by, "worker 2");
    }),
    unfenced("control: the session ends first", async (act) => {
      const { resource, one, session, pending, turnOfTwo } = await stoppedInSession(act);
      await queryAt(act.environment.databaseUrl, `select pg_terminate_backend(${session})`);
      act.step("breaks", "store", { text: `session ${session} ends: a failover, a pooler, a limit for idle connections` });
      await turnOfTwo();
      one.wakesUp();
      expectLoss(act, { late: await pending.answer, stored: await act.stored(resource) });
    }),
  ],
  proven:
    "The advisory lock of a session keeps everybody out for as long as its worker stands still. When the session ends first, its worker writes all the same, over another connection, and worker 2's update is lost.",
};

// A worker computes past the end of its lease: its timers, signals and renewals do not run.

const busyWorker = (act: ActRun, beforeWriting: BeforeWriting) =>
  heldUp(act, { resource: "reports/7", late: { total: 1 }, inTime: { total: 2 } }, { by: "computing", beforeWriting });

export const eventLoopStall: Scenario = {
  name: "event-loop-stall",
  about: "a worker blocks its own event loop past the end of its lease, and writes",
  acts: [
    fenced("through the gateway", async (act) => expectRefusal(act, await busyWorker(act, "trusts"))),
    fenced("looking at the lease again after the computation", async (act) => {
      const { late, stored } = await busyWorker(act, "looks_again");
      act.expect("worker 1 finds out by itself, and does not write", codeOf(late), "lease_over");
      act.expect("what is stored is worker 2's", stored?.by, "worker 2");
    }),
    unfenced("control: straight into a table", async (act) => expectLoss(act, await busyWorker(act, "trusts"))),
  ],
  proven:
    "A worker that was busy past its lease is refused by the fence, and finds out by itself if it looks before it writes. Without either, worker 2's update is lost.",
};

// A worker writes in time, and its packet is late: no check by the worker would have helped.

/** A server may end a request that has begun and is not complete after this time. */
const MAX_DELAY_MS = 5_000;
const SEND_TIMEOUT_MS = 30_000;

async function delayedPacket(act: ActRun): Promise<Outcome> {
  const stock = act.resource("stock/9");
  const { proxy, differing } = await ownConnection(act);
  const one = await act.worker("worker 1", differing);
  const two = await act.worker("worker 2");
  const server = act.route === "gateway" ? "gateway" : "store";

  const older = await one.acquires(stock);
  const workMs = act.ttlMs - MAX_DELAY_MS;
  if (workMs > 0) {
    act.step("remarks", one.name, { text: `is at work for ${workMs} ms` });
    await act.passes(workMs);
  }
  proxy.holdRequests();
  act.step("breaks", server, { text: "worker 1's packets get stuck on the way" });
  const sent = one.writes(stock, { left: 4, by: one.name });
  await proxy.until(({ requests }) => requests.waitingBytes > 0, SEND_TIMEOUT_MS);

  const newer = await two.acquires(stock);
  await two.looksAt(stock);
  await two.writes(stock, { left: 3, by: two.name });

  act.step("remarks", server, { text: "worker 1's packets arrive" });
  proxy.deliver();
  const late = await sent;
  const stored = await act.stored(stock);
  expectTurns(act, { older, newer });
  return { late, stored };
}

/** Worker 1 reaches the store through a proxy of its own. */
async function ownConnection(act: ActRun): Promise<{ readonly proxy: FaultProxy; readonly differing: Differing }> {
  const { gatewayUrl, databaseUrl } = act.environment;
  const url = act.route === "gateway" ? gatewayUrl : databaseUrl;
  const proxy = await FaultProxy.start({ upstream: addressOf(url) });
  act.use(proxy);
  return { proxy, differing: { [act.route === "gateway" ? "gatewayUrl" : "databaseUrl"]: proxy.urlOf(url) } };
}

export const delayedWrite: Scenario = {
  name: "delayed-write",
  about: "a write that was sent in time arrives after the next holder's",
  acts: [
    fenced("through the gateway", async (act) =>
      expectRefusal(act, await delayedPacket(act), "the late packet is refused: its token is stale"),
    ),
    unfenced("control: straight into a table", async (act) => expectLoss(act, await delayedPacket(act), "the late packet is executed")),
  ],
  proven: "A write that is late on the network is refused by its token; without the fence it overwrites what came after it.",
};
