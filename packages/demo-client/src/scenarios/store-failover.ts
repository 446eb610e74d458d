// The store dies, too, and the fence is in it. A standby that did not have the last fence yet accepts what the primary would have refused; so an answer must wait for it.
import { FaultProxy, PostgresPair } from "@palisade/testkit";
import type { Actor } from "../actor.js";
import { startGateway } from "../gateway-process.js";
import type { Scenario } from "../scenario.js";
import type { Resource, Story } from "../story.js";
import type { Surroundings } from "../worker-protocol.js";

const actors = ["worker 1", "worker 2", "lock", "gateway", "store"];

interface Scene {
  readonly one: Actor;
  readonly two: Actor;
  readonly ledger: Resource;
  readonly pair: PostgresPair;
  readonly address: Pick<Surroundings, "gatewayUrl" | "apiKey">;
  /** The primary is gone for good, and the standby takes over, under the same address of the gateway. */
  failOver(): Promise<void>;
}

/** Worker 2 has taken over from worker 1; what the primary writes from now on does not reach the standby. */
async function setUp(story: Story, replication: "sync" | "async"): Promise<Scene> {
  const pair = story.own(await PostgresPair.start({ replication }));
  const { redisUrls, namespace } = story.stage;
  const lock = { redisUrls, namespace };
  const first = story.own(
    await startGateway({ ...lock, databaseUrl: pair.primary.url, durability: replication === "sync" ? "sync" : "local" }),
  );
  await pair.caughtUp();
  const way = await FaultProxy.start({ upstream: upstreamOf(first.url) });
  story.own({ [Symbol.asyncDispose]: () => way.stop() });
  const address = { gatewayUrl: `http://${way.host}:${way.port}`, apiKey: undefined };
  const one = await story.worker("worker 1", address);
  const two = await story.worker("worker 2", address);
  const ledger = story.resource("ledgers/2");
  await one.acquires(ledger);
  await two.acquires(ledger, { ttlMs: 30_000 });
  pair.replication.holdReplies();
  story.step("breaks", "store", { text: "what the primary writes gets stuck on its way to the standby" });
  const failOver = async (): Promise<void> => {
    await pair.primary.crash();
    await pair.promote();
    story.step("breaks", "store", { text: "the primary dies; the standby takes over" });
    const second = story.own(await startGateway({ ...lock, databaseUrl: pair.standby.url }));
    await way.serverUp(upstreamOf(second.url));
    way.cut();
  };
  return { one, two, ledger, pair, address, failOver };
}

function upstreamOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

async function synchronous(story: Story): Promise<void> {
  const { one, two, ledger, pair, address, failOver } = await setUp(story, "sync");
  const { answer } = two.sends(ledger, { sum: 2, by: two.name });
  // The primary has it, and has sent it on.
  await pair.replication.until(({ replies }) => replies.waitingBytes > 0, 30_000);
  const early = await Promise.race([
    answer.then(() => "answered"),
    story.passes(Math.min(story.ttlMs / 2, 1_000)).then(() => "not answered"),
  ]);
  story.expect("worker 2 is not answered while only the primary knows", early, "not answered");
  pair.replication.deliver();
  story.step("remarks", "store", { text: "the standby has it, too" });
  story.expect("now worker 2 is answered", (await answer).ok);
  await failOver();
  const late = await one.writes(ledger, { sum: 1, by: one.name });
  story.expect("the standby knows the fence, and refuses worker 1", late.ok ? "stored" : late.code, "fencing_token_stale");
  story.expect("what is stored is worker 2's", (await story.stored(ledger, address))?.by, "worker 2");
}

async function asynchronous(story: Story): Promise<void> {
  const { one, two, ledger, address, failOver } = await setUp(story, "async");
  const written = await two.writes(ledger, { sum: 2, by: two.name });
  story.expect("worker 2 is answered at once", written.ok);
  await failOver();
  const late = await one.writes(ledger, { sum: 1, by: one.name });
  story.expect("the standby never heard of the fence, and takes worker 1's write", late.ok);
  story.expect("worker 2's update is lost, although it was answered", (await story.stored(ledger, address))?.by, "worker 1");
}

export const storeFailover: Scenario = {
  name: "store-failover",
  about: "the store fails over to a standby, and the fence with it or not",
  acts: [
    { title: "synchronous replication", actors, door: "gateway", play: synchronous },
    { title: "control: asynchronous replication", actors, door: "gateway", play: asynchronous },
  ],
  proven:
    "A write that is answered only when the standby has it keeps its fence through a failover. With asynchronous replication the fence is forgotten and an update lost.",
};
