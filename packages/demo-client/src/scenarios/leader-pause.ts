// The leader of an election is stopped before it writes, another is elected, and the old one wakes.
import type { ActRun, Scenario } from "../engine/act-run.js";
import { expectLoss, expectRefusal, expectTurns, fenced, type Leases, type Outcome, unfenced } from "./late-write.js";

async function run(act: ActRun): Promise<Outcome & Leases & { readonly learns: string | undefined }> {
  const plan = act.resource("scheduler");
  const [one, two] = await act.workers("worker 1", "worker 2");

  const older = await one.leads(plan);
  const pending = await one.isAboutToWrite(plan, { next: "nightly run", by: one.name });
  const elected = two.leads(plan);
  await one.isStopped();

  const newer = await elected;
  await two.looksAt(plan);
  await two.writes(plan, { next: "backup", by: two.name });

  one.wakesUp();
  const late = await pending.answer;
  const learns = await one.learnsOfLoss();
  return { older, newer, late, learns, stored: await act.stored(plan) };
}

export const leaderPause: Scenario = {
  name: "leader-pause",
  about: "a leader is paused past the end of its term, another is elected, the old one wakes up and writes",
  acts: [
    fenced("through the gateway", async (act) => {
      const outcome = await run(act);
      expectTurns(act, outcome);
      act.expect("the second term has the greater token", outcome.newer.token > outcome.older.token);
      expectRefusal(act, outcome);
      act.expect("worker 1 learns that it does not lead any more", outcome.learns !== undefined);
    }),
    unfenced("control: the same election, straight into a table", async (act) => {
      const outcome = await run(act);
      expectTurns(act, outcome);
      expectLoss(act, outcome);
    }),
  ],
  proven:
    "An election cannot stop a leader that stands still from writing when it wakes up. The token of its term does: without the fence the new leader's update is lost.",
};
