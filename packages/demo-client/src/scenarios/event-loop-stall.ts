// Nobody stops the process: it is busy. A computation that does not let go of the event loop keeps timers, signals and renewals from running just as well.
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import type { BeforeWriting, Document, WriteResult } from "../worker-protocol.js";
import { expectTurns, type Leases } from "./turns.js";

interface Ending extends Leases {
  readonly late: WriteResult;
  readonly stored: Document | null;
}

async function tell(story: Story, beforeWriting: BeforeWriting): Promise<Ending> {
  const report = story.resource("reports/7");
  const [one, two] = await story.workers("worker 1", "worker 2");

  const older = await one.acquires(report);
  const pending = await one.isAboutToWrite(report, { total: 1, by: one.name }, beforeWriting);
  story.step("stops", one.name, { text: "computes without a break: no timer of its own runs" });

  const newer = await two.acquires(report);
  await two.looksAt(report);
  await two.writes(report, { total: 2, by: two.name });

  one.finishesComputing();
  const late = await pending.answer;
  return { older, newer, late, stored: await story.stored(report) };
}

export const eventLoopStall: Scenario = {
  name: "event-loop-stall",
  about: "a worker blocks its own event loop past the end of its lease, and writes",
  acts: [
    {
      title: "through the gateway",
      actors: ["worker 1", "worker 2", "lock", "gateway", "store"],
      door: "gateway",
      async play(story) {
        const ending = await tell(story, "trusts");
        const { late, stored } = ending;
        expectTurns(story, ending);
        story.expect("worker 1 is told that its token is stale", late.ok ? "stored" : late.code, "fencing_token_stale");
        story.expect("what is stored is worker 2's", stored?.by, "worker 2");
      },
    },
    {
      title: "looking at the lease again after the computation",
      actors: ["worker 1", "worker 2", "lock", "gateway", "store"],
      door: "gateway",
      async play(story) {
        const ending = await tell(story, "looks_again");
        const { late, stored } = ending;
        expectTurns(story, ending);
        story.expect("worker 1 finds out by itself, and does not write", late.ok ? "stored" : late.code, "lease_over");
        story.expect("what is stored is worker 2's", stored?.by, "worker 2");
      },
    },
    {
      title: "control: straight into a table",
      actors: ["worker 1", "worker 2", "lock", "store"],
      door: "postgres",
      async play(story) {
        const ending = await tell(story, "trusts");
        const { late, stored } = ending;
        expectTurns(story, ending);
        story.expect("nobody refuses worker 1's late write", late.ok);
        story.expect("worker 2's update is lost", stored?.by, "worker 1");
      },
    },
  ],
  proven:
    "A worker that was busy past its lease is refused by the fence, and finds out by itself if it looks before it writes. Without either, worker 2's update is lost.",
};
