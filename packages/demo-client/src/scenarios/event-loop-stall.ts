// Nobody stops the process: it is busy. A computation that does not let go of the event loop keeps timers, signals and renewals from running just as well.
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import type { Document, WriteResult } from "../worker-protocol.js";

interface Ending {
  readonly late: WriteResult;
  readonly stored: Document | null;
}

async function tell(story: Story, beforeWriting: "trusts" | "looks_again"): Promise<Ending> {
  const report = story.resource("reports/7");
  const [one, two] = await story.workers("worker 1", "worker 2");

  await one.acquires(report);
  const compute = { forMs: 2.5 * story.ttlMs };
  const pending = await one.isAboutToWrite(report, { total: 1, by: one.name }, { compute, beforeWriting });
  story.step("stops", one.name, { text: `computes for ${compute.forMs} ms without a break: no timer of its own runs` });

  await two.acquires(report);
  await two.looksAt(report);
  await two.writes(report, { total: 2, by: two.name });

  const late = await pending.answer;
  story.step("resumes", one.name, { text: "has finished its computation" });
  return { late, stored: await story.stored(report) };
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
        const { late, stored } = await tell(story, "trusts");
        story.expect("worker 1 is told that its token is stale", late.ok ? "stored" : late.code, "fencing_token_stale");
        story.expect("what is stored is worker 2's", stored?.by, "worker 2");
      },
    },
    {
      title: "looking at the lease again after the computation",
      actors: ["worker 1", "worker 2", "lock", "gateway", "store"],
      door: "gateway",
      async play(story) {
        const { late, stored } = await tell(story, "looks_again");
        story.expect("worker 1 finds out by itself, and does not write", late.ok ? "stored" : late.code, "lease_over");
        story.expect("what is stored is worker 2's", stored?.by, "worker 2");
      },
    },
    {
      title: "control: straight into a table",
      actors: ["worker 1", "worker 2", "lock", "store"],
      door: "postgres",
      async play(story) {
        const { late, stored } = await tell(story, "trusts");
        story.expect("nobody refuses worker 1's late write", late.ok);
        story.expect("worker 2's update is lost", stored?.by, "worker 1");
      },
    },
  ],
  proven:
    "A worker that was busy past its lease is refused by the fence, and finds out by itself if it looks before it writes. Without either, worker 2's update is lost.",
};
