// Nothing is wrong with the process: it writes in time, and the packet takes its time. A check by the writer, however late, would have found a good lease.
import { FaultProxy } from "@palisade/testkit";
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import { StoryDiffers } from "../story-differs.js";
import type { Surroundings, WriteResult } from "../worker-protocol.js";
import { expectTurns, type Leases } from "./turns.js";

/** Longer than this no server waits for a request that has begun. */
const longestOnTheWayMs = 5_000;
const patienceMs = 30_000;

interface Ending extends Leases {
  readonly late: WriteResult;
  readonly by: unknown;
}

async function tell(story: Story): Promise<Ending> {
  const stock = story.resource("stock/9");
  const { way, surroundings } = await slowWay(story);
  const one = await story.worker("worker 1", surroundings);
  const two = await story.worker("worker 2");

  const older = await one.acquires(stock);
  await one.isAtWork(story.ttlMs - longestOnTheWayMs);
  way.holdRequests();
  story.step("breaks", story.door === "gateway" ? "gateway" : "store", { text: "worker 1's packets get stuck on the way" });
  const pending = one.sends(stock, { left: 4, by: one.name });
  await way.until(({ requests }) => requests.waitingBytes > 0, patienceMs);

  const newer = await two.acquires(stock);
  await two.looksAt(stock);
  await two.writes(stock, { left: 3, by: two.name });

  story.step("remarks", story.door === "gateway" ? "gateway" : "store", { text: "worker 1's packets arrive" });
  way.deliver();
  const late = await pending.answer;
  return { older, newer, late, by: (await story.stored(stock))?.by };
}

/** Worker 1's own way to where it writes. */
async function slowWay(story: Story): Promise<{ readonly way: FaultProxy; readonly surroundings: Partial<Surroundings> }> {
  const { gateway, databaseUrl } = story.stage;
  const url = new URL(story.door === "gateway" ? gateway.url : databaseUrl);
  // A proxy between the two would be taken for an intruder.
  if (url.protocol === "https:") throw new StoryDiffers("nothing can be held up on the way to an https gateway: give its http address");
  const way = await FaultProxy.start({
    upstream: { host: url.hostname, port: Number(url.port || (story.door === "gateway" ? 80 : 5432)) },
  });
  story.own({ [Symbol.asyncDispose]: () => way.stop() });
  url.host = `${way.host}:${way.port}`;
  return { way, surroundings: story.door === "gateway" ? { gatewayUrl: url.href } : { databaseUrl: url.href } };
}

export const delayedWrite: Scenario = {
  name: "delayed-write",
  about: "a write that was sent in time arrives after the next holder's",
  acts: [
    {
      title: "through the gateway",
      actors: ["worker 1", "worker 2", "lock", "gateway", "store"],
      door: "gateway",
      async play(story) {
        const ending = await tell(story);
        const { late, by } = ending;
        expectTurns(story, ending);
        story.expect("the late packet is refused: its token is stale", late.ok ? "stored" : late.code, "fencing_token_stale");
        story.expect("what is stored is worker 2's", by, "worker 2");
      },
    },
    {
      title: "control: straight into a table",
      actors: ["worker 1", "worker 2", "lock", "store"],
      door: "postgres",
      async play(story) {
        const ending = await tell(story);
        const { late, by } = ending;
        expectTurns(story, ending);
        story.expect("the late packet is executed", late.ok);
        story.expect("worker 2's update is lost", by, "worker 1");
      },
    },
  ],
  proven: "A write that is late on the network is refused by its token; without the fence it overwrites what came after it.",
};
