// What the recovery of a store asks: which resources there were, a token that no lease exceeds, and
// marks that only rise.

import { keysOf } from "../../src/protocol/verbs.js";
import { generationOf, readFloor, status } from "../../src/redis/record.js";
import { describe, expect, test } from "./lock-test.js";
import { opened } from "./redis/opened-fleet.js";

const soon = { timeout: 30_000 };

const token = (resource: string) => `{palisade}:token:${resource}`;

describe("highestToken", () => {
  test("T1 is not below any lease so far, and below every later one, also where the counters differ", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    const locker = open({ nodes: urls });
    const lease = await locker.acquire("r");
    await lease.release();
    // A grant that only one node has stored was never a lease.
    await nodes[0]?.cli("SET", token("r"), String(lease.token + 500));
    expect(await locker.fleet.highestToken("r")).toBe(lease.token);
    await nodes[2]?.kill();
    // Now the third may have had it, so it may have been a lease.
    await expect.poll(() => locker.fleet.highestToken("r")).toBe(lease.token + 500);
    // The two that grant the next lease had not stored it before the question.
    await Promise.all([nodes[0]?.kill(), nodes[2]?.restart()]);
    expect((await locker.acquire("r")).token).toBeGreaterThan(lease.token + 500);
  });

  test("T1 of a resource whose counter has run out is not below the lease that it had", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    const locker = open({ nodes: urls });
    const lease = await locker.acquire("r");
    await lease.release();
    await Promise.all(nodes.map((node) => node.cli("DEL", token("r"))));
    const highest = await locker.fleet.highestToken("r");
    expect(highest).toBeGreaterThanOrEqual(lease.token);
    expect((await locker.acquire("r")).token).toBeGreaterThan(highest);
  });

  test("T1 G4 raised to a token of another fleet, every later lease is above it, and it counts as issued", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    const locker = open({ nodes: urls });
    const lease = await locker.acquire("r");
    await lease.release();
    const foreign = lease.token + 200_000;
    expect(await locker.fleet.issued("r", foreign)).toBe(false);
    expect(await locker.fleet.highestToken("r", foreign)).toBe(foreign);
    expect(await locker.fleet.highestToken("r", lease.token)).toBe(foreign);
    expect(await locker.fleet.issued("r", foreign)).toBe(true);
    await nodes[0]?.kill();
    expect((await locker.acquire("r", { waitMs: 10_000 })).token).toBeGreaterThan(foreign);
  });

  test("refuses a token that no fleet can have issued by now, before it asks a node", async ({ open }) => {
    const locker = open({ nodes: ["redis://127.0.0.1:1"] });
    await expect(locker.fleet.highestToken("r", 999_999_999_999_999)).rejects.toThrow(
      /^atLeast is 999999999999999, and no fleet has issued more/,
    );
    await expect(locker.fleet.highestToken("r", 1.5)).rejects.toThrow(RangeError);
    await expect(locker.fleet.highestToken("r", -1)).rejects.toThrow(RangeError);
  });

  test("needs a quorum", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    const locker = open({ nodes: urls });
    await locker.ready();
    await Promise.all([nodes[0]?.kill(), nodes[1]?.kill()]);
    await expect(locker.fleet.highestToken("r")).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
    await expect(locker.fleet.listResources()).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
    await expect(locker.fleet.mark("store", 1)).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
  });
});

test("listResources names every resource that had a lease, whatever its name, and those of no other namespace", async ({ redis, open }) => {
  const [locker, other] = [`${redis.namespace}-`, `${redis.namespace}-x`].map((namespace) => open({ nodes: redis.urls, namespace }));
  await other?.acquire("not ours");
  const names = ["a", "a*[b]?", "größe/ü", ...Array.from({ length: 50 }, (_, n) => `many/${n}`)];
  await Promise.all(names.map(async (name) => (await locker?.acquire(name))?.release()));
  expect([...((await locker?.fleet.listResources()) ?? [])].sort()).toEqual(names.sort());
});

test("G7 a mark is known to a node that was rebuilt, and to one that took a member's place", async ({ fleet, open }) => {
  const { urls, nodes } = await fleet({ nodes: 4 });
  const [n1, n2, n3, n4] = nodes;
  // A connection that was begun behind the cut is given up after connectTimeoutMs.
  const locker = open({ nodes: urls.slice(0, 3), ttlMs: 200, maxTtlMs: 200, connectTimeoutMs: 500 });
  await locker.ready();
  await n1?.partition();
  await expect.poll(() => locker.fleet.mark("store", 7), soon).toBe(7);
  await n1?.heal();
  await expect.poll(async () => (await locker.ready()).admitted.length, soon).toBe(3);
  // Only the second and the third have it.
  await n3?.restart({ forget: true });
  await expect.poll(() => n3?.cli("HGET", "{palisade}:marks", "store"), soon).toBe("7");
  await locker.fleet.reconfigure({ replace: new URL(urls[1] ?? "").host, by: urls[3] ?? "" });
  await expect.poll(() => n4?.cli("HGET", "{palisade}:marks", "store"), soon).toBe("7");
  await Promise.all([n2, n3].map((node) => node?.kill()));
  await expect.poll(() => locker.fleet.mark("store", 0), soon).toBe(7);
});

test("G7 a mark does not count where it was stored after another node was rebuilt from that one", async ({ fleet }) => {
  const { urls, nodes } = await fleet({ nodes: 3 });
  await using lock = await opened(urls, { namespace: "palisade" });
  const keys = keysOf("palisade");
  const { roster } = status.read(await nodes[0]?.cli("EVAL", status.source, "1", keys.node));
  const { source, args } = readFloor("another", roster === undefined ? "" : generationOf(roster));
  await nodes[0]?.cli("EVAL", source, "1", keys.node, ...args);
  const asked = await lock.fleet.mark("store", 7);
  expect(asked[0]).toMatchObject({ kind: "unreachable", cause: expect.stringMatching(/being admitted, which does not count$/) });
  expect(asked.slice(1)).toMatchObject([{ answer: 7 }, { answer: 7 }]);
  expect((await lock.fleet.mark("store", 0)).map(({ kind }) => kind)).toEqual(["answered", "answered", "answered"]);
});

test("a mark only rises, and is known while a quorum answers", async ({ fleet, open }) => {
  const { urls, nodes } = await fleet({ nodes: 3 });
  const locker = open({ nodes: urls });
  expect(await locker.fleet.mark("store", 0)).toBe(0);
  expect(await locker.fleet.mark("store", 7)).toBe(7);
  expect(await locker.fleet.mark("store", 5)).toBe(7);
  expect(await locker.fleet.mark("other", 0)).toBe(0);
  await nodes[1]?.kill();
  await expect.poll(() => locker.fleet.mark("store", 0)).toBe(7);
  await expect(locker.fleet.mark("store", -1)).rejects.toThrow(RangeError);
});
