// A worker is stopped between its last check and its write, and wakes after the end of its lease.
import type { ActRun, Scenario } from "../engine/act-run.js";
import { expectLoss, expectRefusal, expectTurns, fenced, type Leases, type Outcome, unfenced } from "./late-write.js";

async function run(act: ActRun): Promise<Outcome & Leases> {
  const order = act.resource("orders/42");
  const [one, two] = await act.workers("worker 1", "worker 2");

  const older = await one.acquires(order);
  const pending = await one.isAboutToWrite(order, { status: "cancelled", by: one.name });
  await one.isStopped();

  const newer = await two.acquires(order);
  await two.looksAt(order);
  await two.writes(order, { status: "paid", by: two.name });

  one.wakesUp();
  const late = await pending.answer;
  return { older, newer, late, stored: await act.stored(order) };
}

export const gcPause: Scenario = {
  name: "gc-pause",
  about: "a worker is paused past the end of its lease, wakes up and writes",
  acts: [
    fenced("through the gateway", async (act) => {
      const outcome = await run(act);
      expectTurns(act, outcome);
      act.expect("the second lease has the greater token", outcome.newer.token > outcome.older.token);
      expectRefusal(act, outcome);
    }),
    unfenced("control: the same, straight into a table", async (act) => {
      const outcome = await run(act);
      expectTurns(act, outcome);
      expectLoss(act, outcome);
    }),
  ],
  proven:
    "With the fence the paused worker is refused and nothing is lost. Without it the same lock, the same pause and the same writes lose worker 2's update.",
};
