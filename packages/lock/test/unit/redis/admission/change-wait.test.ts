// How long a change of members is tried, in time that a test moves.
import { expect, test } from "vitest";
import type { ChangeWaiting } from "../../../../src/protocol/fleet.js";
import { ChangeWait, described } from "../../../../src/redis/admission/members.js";
import { ManualClock } from "../../scripted-node.js";

const leases = (waitMs: number) => ({ why: "leases may run", waitMs, outwaits: true });
const others = { why: "too few nodes answer", waitMs: 50, outwaits: false };

/** Looks again and again, as a changer does; the time until it gives up, or until that is over. */
async function patience(clock: ManualClock, wait: ChangeWait, what: () => Parameters<ChangeWait["for"]>[0] | undefined): Promise<number> {
  const beganAt = clock.now;
  for (;;) {
    const wanted = what();
    if (wanted === undefined) return clock.now - beganAt;
    const waiting = wait.for(wanted);
    clock.advance(250);
    if (!(await waiting)) return clock.now - 250 - beganAt;
  }
}

test("a change without a limit outwaits leases however long they last, and gives up two minutes after them when nothing comes of it", async () => {
  const clock = new ManualClock();
  const wait = new ChangeWait(clock, {});
  const endsAt = clock.now + 3_600_000;
  expect(await patience(clock, wait, () => (clock.now < endsAt ? leases(endsAt - clock.now) : undefined))).toBe(3_600_000);
  const then = await patience(clock, wait, () => others);
  expect(then).toBeGreaterThan(119_000);
  expect(then).toBeLessThanOrEqual(120_250);
});

test("a change with a limit gives up at once where leases last longer", async () => {
  const clock = new ManualClock();
  const wait = new ChangeWait(clock, { waitMs: 1_000 });
  expect(await wait.for(leases(1_001))).toBe(false);
  expect(described(leases(1_000.5))).toBe("leases may run for 1001 ms more");
  expect(described(others)).toBe("too few nodes answer");
});

test("what is waited for is told once, and again when it is something else or takes longer", async () => {
  const clock = new ManualClock();
  const heard: ChangeWaiting[] = [];
  const wait = new ChangeWait(clock, { onWait: (waiting) => heard.push(waiting) });
  const look = async (what: Parameters<ChangeWait["for"]>[0]): Promise<void> => {
    const waiting = wait.for(what);
    clock.advance(250);
    await waiting;
  };
  for (const what of [others, others, leases(5_000), leases(4_750), leases(9_000), others]) await look(what);
  expect(heard).toEqual([
    { why: others.why },
    { why: "leases may run", waitMs: 5_000 },
    { why: "leases may run", waitMs: 9_000 },
    { why: others.why },
  ]);
});
