// The short ways of a grant and of a release: one resource that is free, alone or among others of
// one turn, an owner like those that the lock draws. Nearly every question goes this way, so the
// promises are held to it by themselves.
import { expect, test as plain } from "@palisade/testkit/vitest";
import { Redis } from "ioredis";
import { keysOf } from "../../../src/protocol/verbs.js";
import { readAdmissionRecord, readFloor } from "../../../src/redis/record.js";
import { asking, opened } from "./opened-fleet.js";

const namespace = "short";
const keys = keysOf(namespace);
const ttlMs = 60_000;

let owners = 0;
const question = (resource = "a") => ({ ...asking(resource, ttlMs), owner: `owner-${++owners}-`.padEnd(22, "x") });

/** One node that has granted the resource before, and a way to look past the lock. */
const test = plain.extend("it", async ({ fleet }, { onCleanup }) => {
  const servers = await fleet({ nodes: 1, appendfsync: "no" });
  const lock = await opened(servers.urls, { namespace, maxTtlMs: ttlMs });
  const redis = new Redis(servers.nodes[0]?.directUrl ?? "");
  onCleanup(() => redis.disconnect());
  const node = lock.node("n1");
  const first = question();
  const granted = await node.ask("grant", first);
  await node.ask("release", first);
  const base = Number(await redis.hget(keys.node, "floor"));
  return { redis, node, base, token: granted.kind === "granted" ? granted.token : 0 };
});

test("T1 tokens of a known resource rise by one", async ({ it }) => {
  for (let next = it.token + 1; next < it.token + 20; next++) {
    const asked = question();
    expect(await it.node.ask("grant", asked)).toMatchObject({ kind: "granted", token: next });
    expect(await it.node.ask("release", asked)).toEqual({ kind: "released", node: "n1", listeners: 0 });
  }
});

test("T2 a grant says in which epoch it was given, also when the asker believes in another", async ({ it }) => {
  const before = readAdmissionRecord((await it.redis.hget(keys.node, "admitted")) ?? "");
  const call = readFloor("another epoch", before?.generation ?? "");
  await it.redis.eval(call.source, 2, keys.node, keys.marks, ...call.args);
  expect(await it.node.ask("grant", question())).toMatchObject({ kind: "granted", epoch: `${before?.generation}:another epoch` });
});

test("T2 a counter that is older than the last admission does not count", async ({ it }) => {
  await it.redis.set(keys.token("a"), "1000");
  expect(await it.node.ask("grant", question())).toMatchObject({
    kind: "granted",
    token: expect.toSatisfy((token: number) => token >= it.token),
  });
});

test("T1 a counter that leads all others is not forgotten when it runs out", async ({ it }) => {
  const high = it.base + 1_000;
  await it.redis.set(keys.token("a"), String(high));
  const asked = question();
  expect(await it.node.ask("grant", asked)).toMatchObject({ kind: "granted", token: high + 1 });
  await it.node.ask("release", asked);
  await it.redis.del(keys.token("a"));
  expect(await it.node.ask("grant", question())).toMatchObject({
    kind: "granted",
    token: expect.toSatisfy((token: number) => token > high + 1),
  });
});

test("L2 a release leaves the lock of another owner alone", async ({ it }) => {
  const [holder, late] = [question(), question()];
  await it.node.ask("grant", holder);
  expect(await it.node.ask("release", late)).toEqual({ kind: "absent", node: "n1" });
  expect(await it.redis.get(keys.lock("a"))).toBe(`${holder.owner}|${holder.label}`);
  expect(await it.node.ask("grant", late)).toMatchObject({ kind: "held" });
});

test("T1 a resource without a counter goes on above the floor, which rises with it, alone and among others", async ({ it }) => {
  let floor = it.base;
  const isAbove = (token: number): boolean => token > floor;
  for (const names of [["b"], ["c", "d", "e"], ["b"], ["d", "e"]]) {
    const asked = names.map(question);
    const granted = await Promise.all(asked.map((each) => it.node.ask("grant", each)));
    expect(granted).toMatchObject(names.map(() => ({ kind: "granted", token: expect.toSatisfy(isAbove) })));
    const highest = Math.max(...granted.map((ballot) => (ballot.kind === "granted" ? ballot.token : 0)));
    floor = Number(await it.redis.hget(keys.node, "floor"));
    expect(floor).toBeGreaterThanOrEqual(highest);
    await Promise.all(asked.map((each) => it.node.ask("release", each)));
    await it.redis.del(names.map((name) => keys.token(name)));
  }
});

test("T2 among others of one turn, too, a counter that is older than the last admission does not count", async ({ it }) => {
  await it.redis.mset(keys.token("b"), "1000", keys.token("c"), "1000");
  const asked = ["b", "c"].map(question);
  const isAbove = (token: number): boolean => token > it.token - 1;
  expect(await Promise.all(asked.map((each) => it.node.ask("grant", each)))).toMatchObject(
    asked.map(() => ({ kind: "granted", token: expect.toSatisfy(isAbove) })),
  );
});

test.for(["with", "without"])(
  "L2 releases of one turn, %s the right to read many keys, free what is theirs and nothing else",
  async (right, { it }) => {
    if (right === "without") await it.redis.acl("SETUSER", "default", "-mget");
    const [ours, theirs, wanted] = [question("ours"), question("theirs"), question("wanted")];
    await Promise.all([ours, theirs, wanted].map((each) => it.node.ask("grant", each)));
    expect(await it.node.ask("grant", question("wanted"))).toMatchObject({ kind: "held" });
    await it.redis.hset(keys.lock("foreign"), "a", "b");
    const late = { ...theirs, owner: question().owner };
    const released = [ours, late, question("nobody's"), wanted, ours].map((each) => it.node.ask("release", each));
    const kinds = (await Promise.all(released)).map(({ kind }) => kind);
    expect(kinds.slice(0, 4)).toEqual(["released", "absent", "absent", "released"]);
    expect((await it.node.ask("release", question("foreign"))).kind).not.toBe("released");
    expect((await it.redis.keys(keys.lock("*"))).toSorted()).toEqual([keys.lock("foreign"), keys.lock("theirs")]);
  },
);

test("T1 a least token that is named raises a resource without a counter, by 65536 at most, and no other; and lowers none", async ({
  it,
}) => {
  const granted = async (names: readonly string[], leastToken: number): Promise<unknown[]> => {
    const asked = names.map((name) => ({ ...question(name), leastToken }));
    const ballots = await Promise.all(asked.map((each) => it.node.ask("grant", each)));
    await Promise.all(asked.map((each) => it.node.ask("release", each)));
    return ballots.map((ballot) => (ballot.kind === "granted" ? ballot.token : ballot));
  };
  const least = it.token + 5_000;
  expect(await granted(["b"], least)).toEqual([least]);
  expect(await granted(["c", "d"], least + 10)).toEqual([least + 10, least + 11]);
  expect(await granted(["a", "b"], least + 1_000)).toEqual([it.token + 1, least + 1]);
  expect(await granted(["e"], it.token)).toEqual([least + 12]);
  expect(await granted(["f"], 999_999_999_999_999)).toEqual([least + 12 + 65_536]);
  expect(await granted(["g", "h"], 999_999_999_999_999)).toEqual([least + 12 + 2 * 65_536, least + 12 + 3 * 65_536]);
  const several = { ...asking(["i", "a"], ttlMs), leastToken: 999_999_999_999_999 };
  expect(await it.node.ask("grant", several)).toMatchObject({ token: least + 12 + 4 * 65_536 });
  expect(Number(await it.redis.hget(keys.node, "floor"))).toBe(least + 12 + 4 * 65_536);
});
