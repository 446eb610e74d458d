// The story the fence was made for: a worker stops after its last check, sleeps through the end of its lease, wakes up and writes.
import type { Scenario } from "../scenario.js";
import type { Story } from "../story.js";
import type { Document, WriteResult } from "../worker-protocol.js";
import { expectTurns, type Leases } from "./turns.js";

interface Ending extends Leases {
  readonly late: WriteResult;
  readonly stored: Document | null;
}

async function tell(story: Story): Promise<Ending> {
  const order = story.resource("orders/42");
  const [one, two] = await story.workers("worker 1", "worker 2");

  const older = await one.acquires(order);
  const pending = await one.isAboutToWrite(order, { status: "cancelled", by: one.name });
  await one.isStopped();

  const newer = await two.acquires(order);
  if (story.door === "gateway") await two.seals(order);
  else await two.reads(order);
  await two.writes(order, { status: "paid", by: two.name });

  one.wakesUp();
  const late = await pending.answer;
  return { older, newer, late, stored: await story.stored(order) };
}

export const gcPause: Scenario = {
  name: "gc-pause",
  about: "a worker is paused past the end of its lease, wakes up and writes",
  acts: [
    {
      title: "through the gateway",
      actors: ["worker 1", "worker 2", "lock", "gateway", "store"],
      door: "gateway",
      async play(story) {
        const ending = await tell(story);
        const { older, newer, late, stored } = ending;
        expectTurns(story, ending);
        story.expect("the second lease has the greater token", newer.token > older.token);
        story.expect("worker 1 is told that its token is stale", late.ok ? "stored" : late.code, "fencing_token_stale");
        story.expect("what is stored is worker 2's", stored?.by, "worker 2");
      },
    },
    {
      title: "control: the same, straight into a table",
      actors: ["worker 1", "worker 2", "lock", "store"],
      door: "postgres",
      async play(story) {
        const ending = await tell(story);
        const { late, stored } = ending;
        expectTurns(story, ending);
        story.expect("nobody refuses worker 1's late write", late.ok);
        story.expect("worker 2's update is lost", stored?.by, "worker 1");
      },
    },
  ],
  proven:
    "With the fence the paused worker is refused and nothing is lost. Without it the same lock, the same pause and the same writes lose worker 2's update.",
};
