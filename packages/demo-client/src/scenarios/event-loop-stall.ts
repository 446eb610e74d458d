// A worker computes past the end of its lease: its timers, signals and renewals do not run.
import type { ActRun, Scenario } from "../engine/act-run.js";
import type { BeforeWriting } from "../worker/protocol.js";
import { codeOf, expectLoss, expectRefusal, expectTurns, fenced, type Outcome, unfenced } from "./late-write.js";

async function run(act: ActRun, beforeWriting: BeforeWriting): Promise<Outcome> {
  const report = act.resource("reports/7");
  const [one, two] = await act.workers("worker 1", "worker 2");

  const older = await one.acquires(report);
  const pending = await one.isAboutToWrite(report, { total: 1, by: one.name }, beforeWriting);
  act.step("stops", one.name, { text: "computes without a break: no timer of its own runs" });

  const newer = await two.acquires(report);
  await two.looksAt(report);
  await two.writes(report, { total: 2, by: two.name });

  one.finishesComputing();
  const late = await pending.answer;
  const stored = await act.stored(report);
  expectTurns(act, { older, newer });
  return { late, stored };
}

export const eventLoopStall: Scenario = {
  name: "event-loop-stall",
  about: "a worker blocks its own event loop past the end of its lease, and writes",
  acts: [
    fenced("through the gateway", async (act) => expectRefusal(act, await run(act, "trusts"))),
    fenced("looking at the lease again after the computation", async (act) => {
      const { late, stored } = await run(act, "looks_again");
      act.expect("worker 1 finds out by itself, and does not write", codeOf(late), "lease_over");
      act.expect("what is stored is worker 2's", stored?.by, "worker 2");
    }),
    unfenced("control: straight into a table", async (act) => expectLoss(act, await run(act, "trusts"))),
  ],
  proven:
    "A worker that was busy past its lease is refused by the fence, and finds out by itself if it looks before it writes. Without either, worker 2's update is lost.",
};
