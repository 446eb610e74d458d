// The store fails over, and the fence is in it. A standby that did not have the last fence accepts
// what the primary would have refused; so an answer must wait for the standby.
import { FaultProxy, PostgresPair } from "@palisade/testkit";
import type { ActRun, Differing, Scenario } from "../engine/act-run.js";
import { startGateway } from "../engine/environment.js";
import type { Worker } from "../engine/worker-handle.js";
import type { Resource } from "../worker/protocol.js";
import { expectRefusal, fenced } from "./late-write.js";

interface Parts {
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
async function setUp(act: ActRun, replication: "sync" | "async"): Promise<Parts> {
  const pair = act.own(await PostgresPair.start({ replication }));
  const { redisUrls } = act.environment;
  const durability = replication === "sync" ? "sync" : "local";
  // What the control loses would be noticed otherwise (restored-backup).
  const restoreCheck = replication === "sync" ? "on" : "off";
  const options = { redisUrls, databaseUrl: pair.primary.url, durability, restoreCheck } as const;
  const first = act.own(await startGateway(options));
  await pair.caughtUp();
  const proxy = await FaultProxy.start({ upstream: hostOf(first.url) });
  act.own({ [Symbol.asyncDispose]: () => proxy.stop() });
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
    const second = act.own(await startGateway({ redisUrls, databaseUrl: pair.standby.url, restoreCheck }));
    await proxy.serverUp(hostOf(second.url));
    proxy.cut();
  };
  return { one, two, ledger, pair, address, failOver };
}

function hostOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
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
