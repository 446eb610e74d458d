// Which nodes are one fleet: a locker that is configured for another one is kept silent, in simulated
// time. Two ways to one server: test/real/members.test.ts.
import { describe, expect } from "vitest";
import { scripts } from "../../../../src/redis/lua.generated.js";
import { type Actor, asking, Gate, type Story, test } from "../../../simulation/story.js";
import { admissionCalls } from "../admission-calls.js";

const RECORD = "{sim}:node";
const three = { nodes: 3 } as const;
const short = { ttlMs: 50, maxTtlMs: 50, retry: { minDelayMs: 1, maxDelayMs: 5 } };
const cluster = { ttlMs: 1_000, maxTtlMs: 5_000 };

async function settled(story: Story, options: object): Promise<Actor> {
  const actor = story.actor(options);
  await actor.fleet.settled();
  return actor;
}

const admits = (story: Story, { fleet }: Actor, ...names: readonly string[]) =>
  story.eventually(() => expect(fleet.state().admitted).toEqual(names));

describe("a locker that must not vote", () => {
  test(
    "T1 is one that is older than the records of its fleet, which it neither founds over nor votes in",
    async (story) => {
      const early = await settled(story, cluster);
      // A later version may lay out every field anew, so this one reads none of them.
      for (const node of story.nodes)
        node.command("HSET", RECORD, "format", "99", "admitted", "laid out anew", "size", "three", "floor", "-");
      const records = () => story.nodes.map((node) => node.command("HGETALL", RECORD));
      const before = records();
      const late = await settled(story, cluster);
      void early.node("n1").ask("inspect", { resources: ["a"] });
      for (const actor of [late, early]) {
        await story.until(() => actor.fleet.refusal, "it is refused");
        expect(actor.fleet.refusal).toMatchObject({
          kind: "mismatch",
          code: "unknown_format",
          message: expect.stringMatching(/^n1 \(.*\) has a record of format 99, and this version of the lock knows 1; /),
        });
        expect(await actor.node("n2").ask("grant", asking("a", 1_000))).toMatchObject({ kind: "unreachable" });
      }
      expect(await late.fleet.probe()).toContainEqual(expect.objectContaining({ severity: "error", code: "unknown_format" }));
      expect(records()).toEqual(before);
    },
    three,
  );

  test(
    "T1 changes no record of an unknown format, even if its status was read before",
    async ({ nodes: [node] }) => {
      node?.command("HSET", RECORD, "format", "99", "floor", "7");
      const { status, ...changes } = admissionCalls;
      for (const call of Object.values(changes)) expect(() => node?.run(call)).toThrow("FORMAT");
      expect(node?.command("HGETALL", RECORD)).toEqual(["format", "99", "floor", "7"]);
    },
    { nodes: 1 },
  );

  test(
    "is one whose nodes belong to different fleets",
    async (story) => {
      const [first = "", second = "", third = "", fourth = ""] = story.urls;
      for (const nodes of [
        [first, second],
        [third, fourth],
      ])
        expect((await settled(story, { ...cluster, nodes })).fleet.refusal).toBe(undefined);
      const mixed = await settled(story, { ...cluster, nodes: [first, fourth] });
      expect(mixed.fleet.refusal?.message).toMatch(/^n1 \(.*\) belongs to fleet \S+, n2 \(.*\) to fleet \S+; /);
      expect(await mixed.fleet.probe()).toContainEqual(
        expect.objectContaining({ severity: "error", node: "fleet", code: "fleet_mismatch" }),
      );
    },
    { nodes: 4 },
  );

  test(
    "T1 asks no node that has gone to another fleet, until an operator has cleared it; lockers that run look again by themselves",
    async (story) => {
      (await settled(story, short)).kill();
      const clear = () => story.nodes[2]?.command("DEL", RECORD);
      clear();
      const alone = await settled(story, { ...short, nodes: story.urls.slice(2) });
      await admits(story, alone, "n1");
      alone.kill();
      const all = await settled(story, short);
      expect(all.fleet.state()).toMatchObject({
        admitted: ["n1", "n2"],
        quarantined: [{ node: "n3", reason: expect.stringMatching(/^FLEET_MISMATCH.*or clear it$/) }],
      });
      clear();
      await admits(story, all, "n1", "n2", "n3");
    },
    three,
  );

  test(
    "is one that wants longer leases than its fleet allows",
    async (story) => {
      const allowed = [cluster, { ttlMs: 10, maxTtlMs: 10 }, { ttlMs: 10 }];
      for (const options of allowed)
        expect((await settled(story, options)).fleet.state()).toMatchObject({
          refusal: undefined,
          maxTtlMs: 5_000,
          admitted: ["n1", "n2", "n3"],
        });
      const greedy = await settled(story, { ...cluster, maxTtlMs: 5_001 });
      const message = expect.stringMatching(/^maxTtlMs is 5001, but .* 5000 ms/);
      expect(greedy.fleet.refusal).toMatchObject({ kind: "ttl", code: "max_ttl", message });
    },
    three,
  );
});

test(
  "T1 the doctor names a node whose tokens are ahead of what a fleet that lost all memory begins with",
  async (story) => {
    const { fleet } = await settled(story, cluster);
    const ahead = async () => (await fleet.probe()).filter(({ code }) => code === "floor_ahead");
    expect(await ahead()).toEqual([]);
    const [node] = story.nodes;
    node?.command("HSET", RECORD, "floor", String(((node?.server.wallMs() ?? 0) + 3_600_000) * 100));
    const message = expect.stringMatching(/^its tokens are 3[56]\d{7} ahead/);
    expect(await ahead()).toMatchObject([{ node: "n1", severity: "warning", message }]);
  },
  { nodes: 1 },
);

// T1, L2 where a locker looks slowly: it began before others admitted a node, and goes on after
// that node has forgotten what it granted.

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
    await story.until(() => gate.isReached && first?.field("nonce") && third?.field("nonce"), "it has looked at the others");
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
