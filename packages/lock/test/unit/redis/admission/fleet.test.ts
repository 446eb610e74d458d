// Which nodes are one fleet: a locker that is configured for another one is kept silent, in simulated
// time. Two ways to one server, and risky settings: test/real/redis/fleet.test.ts.
import { describe, expect } from "vitest";
import { type Actor, asking, type Story, test } from "../../../simulation/story.js";
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
