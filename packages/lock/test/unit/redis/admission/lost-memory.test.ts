// Nodes that lost their memory, in simulated time: what is waited for before they vote again, and which
// tokens they give then. Real servers that restart: test/real/redis/admission.test.ts.
import { describe, expect } from "vitest";
import { type Actor, asking, type Story, test } from "../../../simulation/story.js";

const RECORD = "{sim}:node";
const three = { nodes: 3, appendfsync: "no" } as const;

const floorOf = (story: Story, node: number): number => Number(story.nodes[node]?.command("HGET", RECORD, "floor"));

const admissionsOf = (actors: readonly Actor[], node: string): readonly object[] =>
  actors.flatMap(({ events }) => events.filter((event) => event.kind === "admitted" && event.node === node));

/** One that has founded the fleet, and has been told of nothing since. */
async function founded(story: Story, options: object = {}): Promise<Actor> {
  const actor = story.actor(options);
  await actor.locker.ready();
  await story.until(() => actor.fleet.state().admitted.length === story.nodes.length, "all nodes are admitted");
  (actor.events as unknown[]).length = 0;
  return actor;
}

test(
  "L2 a node that lost its memory does not vote before every lease it may have forgotten is over; T2 then gives only tokens above all that was stored meanwhile",
  async (story) => {
    const longestMs = 3_000;
    const { fleet, events, locker } = await founded(story, { ttlMs: longestMs, maxTtlMs: longestMs });
    const forgottenMs = story.nowMs;
    story.nodes[2]?.forget();
    await story.until(() => events.some(({ kind }) => kind === "quarantined"), "it is quarantined");
    const meanwhile = await locker.acquire("r");
    expect(meanwhile.ballots.filter(({ kind }) => kind === "granted").map(({ node }) => node)).toEqual(["n1", "n2"]);
    // Stored while it waits: floors read before the wait would miss it.
    const token = floorOf(story, 0) + 1_000;
    story.nodes[0]?.command("HSET", RECORD, "floor", String(token));
    await story.until(() => fleet.state().admitted.includes("n3"), "it is admitted");
    expect(story.nowMs - forgottenMs).toBeGreaterThanOrEqual(longestMs);
    expect(events).toContainEqual(expect.objectContaining({ kind: "admitted", node: "n3", way: "rebuilt", floor: token }));
    story.nodes[0]?.kill();
    const next = await locker.acquire("another", { waitMs: 10_000 });
    expect(next.token).toBeGreaterThan(token);
    for (const field of ["fleet", "members"])
      expect(story.nodes[2]?.command("HGET", RECORD, field)).toBe(story.nodes[1]?.command("HGET", RECORD, field));
  },
  three,
);

test(
  "comes back although it was silent when its status was read, and no caller asks it anything; many lockers bring it back once",
  async (story) => {
    const options = { ttlMs: 200, maxTtlMs: 200, connectTimeoutMs: 150 };
    const first = await founded(story, options);
    const actors = [first, ...(await Promise.all([1, 2, 3, 4].map(() => founded(story, options))))];
    const third = story.nodes[2];
    third?.server.memory.clear();
    await first.locker.inspect("a");
    third?.pause();
    await story.pass(1_000);
    third?.resume();
    await story.until(() => actors.every(({ fleet }) => fleet.state().admitted.length === 3), "all have it back");
    expect(admissionsOf(actors, "n3")).toEqual([expect.objectContaining({ way: "rebuilt" })]);
  },
  three,
);

test(
  "L2 a node that refuses its admission is visited for about once a second, and the others go on voting",
  async (story) => {
    const { locker, fleet } = await founded(story, { ttlMs: 1_000, maxTtlMs: 1_000 });
    const third = story.nodes[2];
    third?.server.memory.clear();
    await locker.inspect("a");
    await story.until(() => third?.command("HGET", RECORD, "proposedFloor"), "its admission is open");
    third?.refuse("admit");
    const admitted = () => String(story.nodes[0]?.command("HGET", RECORD, "admitted"));
    const before = admitted();
    await story.until(() => admitted() !== before, "the first is visited");
    const seen = new Set<string>();
    for (const endsMs = story.nowMs + 5_000; story.nowMs < endsMs; await story.pass(5)) seen.add(admitted());
    expect(seen.size).toBeGreaterThan(3);
    expect(seen.size).toBeLessThan(8);
    expect((await locker.acquire("b")).held).toBe(true);
    third?.refuse(undefined);
    await story.until(() => fleet.state().admitted.length === 3, "it is admitted");
  },
  three,
);

test(
  "L2 a majority that lost its memory comes back although a late founder asked one of it to join a fleet that was not founded",
  async (story) => {
    const { fleet, events } = await founded(story, { ttlMs: 2_000, maxTtlMs: 2_000 });
    for (const node of story.nodes.slice(1)) node.forget();
    // Its admission is open, and it waits for the leases that it may have forgotten.
    await story.until(() => story.nodes[2]?.command("HGET", RECORD, "nonce"), "its admission is open");
    story.nodes[2]?.command("HSET", RECORD, "founding", "a b c|of-another-list-");
    await story.until(() => fleet.state().admitted.length === 3, "all are admitted");
    expect(events).toContainEqual(expect.objectContaining({ kind: "admitted", way: "bootstrap" }));
  },
  three,
);

test(
  "L2 a node waits from the loss on, however long its server has been up, and no longer where its clock was ahead as it came up",
  async (story) => {
    const actor = await founded(story, { ttlMs: 400, maxTtlMs: 400 });
    const [, , third] = story.nodes;
    const back = async () => {
      const lostMs = story.nowMs;
      await actor.heard("admitted", "n3");
      return story.nowMs - lostMs;
    };
    await story.pass(60_000);
    third?.server.memory.clear();
    void actor.locker.inspect("a");
    expect(await back()).toBeGreaterThanOrEqual(400);
    third?.server.jumpClock(3_600_000);
    third?.forget();
    await story.until(() => third?.field("nonce"), "its admission is open");
    third?.server.jumpClock(-3_600_000);
    expect(await back()).toBeLessThan(1_000);
  },
  three,
);

test(
  "T2 a record that is taken away, its floor alone, and the copy of another node's disk count as a lost memory",
  async (story) => {
    const actor = await founded(story, { ttlMs: 200, maxTtlMs: 200 });
    const [, second, third] = story.nodes;
    const losses = [
      () => third?.command("DEL", RECORD),
      () => third?.command("HDEL", RECORD, "floor"),
      () => third?.restart(second?.server.memory.copy()),
    ];
    for (const lose of losses) {
      const later = actor.heard("admitted", "n3");
      lose();
      void actor.locker.inspect("a");
      expect(await later).toMatchObject({ way: "rebuilt" });
    }
    expect(third?.field("id")).not.toBe(second?.field("id"));
  },
  { nodes: 3 },
);

test(
  "T2 a node that was away with its disk gives no token that the others have stored meanwhile",
  async (story) => {
    const actor = await founded(story, { ttlMs: 400, maxTtlMs: 400 });
    const { token } = await actor.locker.using("a", async (lease) => lease);
    story.nodes[0]?.kill();
    await actor.node("n2").ask("raise", { resources: ["a"], token: token + 50 });
    const later = actor.heard("admitted", "n1");
    story.nodes[0]?.restart();
    expect(await later).toMatchObject({ way: "durable" });
    expect(await actor.node("n1").ask("grant", asking("a", 400))).toMatchObject({ kind: "granted", token: token + 51 });
  },
  { nodes: 3 },
);

test("T2 a node is not rebuilt from too few others, and is from their highest floor when they are back; two are rebuilt at once", async (story) => {
  const actor = await founded(story, { ttlMs: 200, maxTtlMs: 200, connectTimeoutMs: 150 });
  const [first, second, third, fourth, fifth] = story.nodes;
  third?.kill();
  fourth?.kill();
  fifth?.forget();
  expect(await actor.heard("admission_blocked")).toMatchObject({
    nodes: ["n5"],
    reason: expect.stringMatching(/^2 of 5 nodes are admitted, 3 are needed to rebuild another; n3 at .* and n4 at .* cannot be reached$/),
  });
  const token = floorOf(story, 3) + 77;
  fourth?.command("HSET", RECORD, "floor", String(token));
  const later = actor.heard("admitted", "n5");
  fourth?.restart();
  expect(await later).toMatchObject({ way: "rebuilt", floor: token });
  third?.restart();
  await story.until(() => actor.fleet.state().admitted.length === 5, "all are admitted");
  const both = ["n1", "n2"].map((name) => actor.heard("admitted", name));
  for (const node of [first, second]) node?.forget();
  expect(await Promise.all(both)).toMatchObject([
    { way: "rebuilt", floor: token },
    { way: "rebuilt", floor: token },
  ]);
});

describe("all nodes at once", () => {
  test(
    "L2 killed with an old snapshot each: the lease that they forgot is waited for",
    async (story) => {
      const options = { ttlMs: 3_000, maxTtlMs: 3_000 };
      const before = await founded(story, options);
      const snapshots = story.nodes.map(({ server }) => server.memory.copy());
      const held = await before.locker.acquire("r");
      for (const [i, node] of story.nodes.entries()) node.restart(snapshots[i]);
      // One that knows the fleet by what the nodes have kept, and one that was there before.
      const rivals = [story.actor(options), before];
      const next = await Promise.race(rivals.map(({ locker }) => locker.acquire("r", { waitMs: 30_000 })));
      expect(held.remainingMs()).toBe(0);
      expect(next.token).toBeGreaterThan(held.token);
    },
    three,
  );

  test(
    "T1 without their memory: tokens go on above those that distinct names have spent at thousands a second",
    async (story) => {
      const { locker } = await founded(story, { ttlMs: 200, maxTtlMs: 200 });
      let last = 0;
      for (let i = 0; i < 40; i++) {
        const leases = await Promise.all(Array.from({ length: 60 }, (_, j) => locker.acquire(`${i} ${j}`, { waitMs: 60_000 })));
        last = Math.max(last, ...leases.map(({ token }) => token));
      }
      for (const { server } of story.nodes) server.memory.clear();
      expect((await locker.acquire("r", { waitMs: 30_000 })).token).toBeGreaterThan(last);
    },
    three,
  );

  test(
    "T2 L2 they wait for the leases they may have forgotten, and start above every token of before, their clocks and the survivors",
    async (story) => {
      const { fleet } = await founded(story, { ttlMs: 400, maxTtlMs: 400 });
      const survivors = floorOf(story, 0) + 60_000_000;
      story.nodes[0]?.command("HSET", RECORD, "floor", String(survivors));
      for (const lost of [story.nodes.slice(2), story.nodes]) {
        const lostMs = story.nowMs;
        const before = Math.max(...story.nodes.map((_, i) => floorOf(story, i)));
        for (const node of lost) node.forget();
        await story.until(() => fleet.state().admitted.length < 5, "the loss is noticed");
        await story.until(() => fleet.state().admitted.length === 5, "all are admitted");
        expect(story.nowMs - lostMs).toBeGreaterThanOrEqual(400);
        for (const node of lost)
          expect(Number(node.command("HGET", RECORD, "floor"))).toBeGreaterThanOrEqual(lost.length === 3 ? survivors : 1);
        if (lost.length === 5) expect(before).toBeGreaterThanOrEqual(survivors);
      }
    },
    { ...three, nodes: 5 },
  );
});
