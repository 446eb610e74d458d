// T1, L2 where a locker looks slowly: it began before others admitted a node, and goes on after
// that node has forgotten what it granted.
import { describe, expect } from "vitest";
import { scripts } from "../../../../src/redis/lua.generated.js";
import { type Actor, asking, Gate, type Story, test } from "../../../simulation/story.js";

const maxTtlMs = 400;
const options = { ttlMs: maxTtlMs, maxTtlMs };
const forgetful = { nodes: 3, appendfsync: "no" } as const;
const looksSlowlyAt = (node: string) => new Gate(scripts.openAdmission, node);

/** n2 is admitted by one of them when every lease that it may have forgotten is over. */
async function outwaited(story: Story, actors: readonly Actor[], forget: () => void, goOn: () => void): Promise<void> {
  forget();
  const forgottenMs = story.nowMs;
  const later = actors.map((actor) => actor.heard("admitted", "n2"));
  goOn();
  expect(await Promise.race(later)).toMatchObject({ way: "rebuilt" });
  expect(story.nowMs - forgottenMs).toBeGreaterThanOrEqual(maxTtlMs);
}

test(
  "L2 T1 a locker that began to look before its fleet was founded neither believes a node at once that has forgotten since nor founds another",
  async (story) => {
    const [first, second, third] = story.nodes;
    const gate = looksSlowlyAt("n2");
    const slow = story.actor({ ...options, gate });
    // It has marked all nodes but the second when the quick one founds the fleet.
    await story.until(() => gate.isReached && first?.field("ticket") && third?.field("ticket"), "it has looked at the others");
    const quick = story.actor(options);
    await quick.locker.ready();
    expect(await quick.node("n2").ask("grant", asking("a", maxTtlMs))).toMatchObject({ kind: "granted" });
    const forget = () => second?.server.memory.clear();
    await outwaited(story, [quick, slow], forget, () => gate.open());
    await story.until(() => [slow, quick].every(({ fleet }) => fleet.state().admitted.length === 3), "both see all nodes vote");
    expect([slow.fleet.refusal, quick.fleet.refusal]).toEqual([undefined, undefined]);
    expect(new Set(story.nodes.map((node) => node.field("fleet"))).size).toBe(1);
  },
  forgetful,
);

describe("L2 a locker that saw how a node stood before its memory was lost does not take that for what it finds there later", () => {
  const losses = [
    ["nothing", ({ nodes: [, second] }: Story) => second?.server.memory.clear()],
    // The run of its server stays the same; its record is the other's.
    ["a copy of another node's memory", ({ nodes: [first, second] }: Story) => second?.remember(first)],
  ] as const;
  for (const [what, lose] of losses)
    test(
      what,
      async (story) => {
        const before = story.actor(options);
        await before.locker.ready();
        before.kill();
        story.nodes[1]?.restart();
        const gate = looksSlowlyAt("n2");
        const slow = story.actor({ ...options, gate });
        await story.until(() => gate.isReached, "it has seen the node");
        const quick = story.actor(options);
        expect(await quick.heard("admitted", "n2")).toMatchObject({ way: "durable" });
        expect(await quick.node("n2").ask("grant", asking("a", maxTtlMs))).toMatchObject({ kind: "granted" });
        await outwaited(
          story,
          [quick, slow],
          () => lose(story),
          () => gate.open(),
        );
      },
      { nodes: 3 },
    );
});

test(
  "T1 a locker proposes no floor of the time before, however long its question was under way",
  async (story) => {
    const gate = looksSlowlyAt("n1");
    const slow = story.actor({ ...options, gate });
    await story.until(() => gate.isReached, "it has asked");
    story.nodes[0]?.server.jumpClock(3_600_000);
    gate.open();
    const { floor } = await slow.heard("admitted", "n1");
    expect(floor).toBeGreaterThanOrEqual(((story.nodes[0]?.server.wallMs() ?? 0) - 10_000) * 100);
  },
  { nodes: 1, appendfsync: "no" },
);
