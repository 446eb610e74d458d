// What one node answers to each request: the contract of the Lua files, asked through the node
// layer of a real server.
import { describe, expect, test as plain } from "@palisade/testkit/vitest";
import { Redis } from "ioredis";
import { fingerprintOf, keysOf } from "../../../src/protocol/verbs.js";
import { readAdmissionRecord, readFloor } from "../../../src/redis/record.js";
import { asking, opened } from "./opened-fleet.js";

/** The first node of the shared fleet, in the test's namespace, and a connection past the lock. */
const test = plain.extend("one", async ({ redis: { urls, namespace } }, { onCleanup }) => {
  const [url = ""] = urls;
  const lock = await opened([url], { namespace });
  const redis = new Redis(url);
  onCleanup(async () => {
    redis.disconnect();
    await lock.fleet.close();
  });
  const floor = async () => Number(await redis.hget(`{${namespace}}:node`, "floor"));
  return { node: lock.node("n1"), namespace, redis, floor };
});

describe("grant", () => {
  test("gives one more than the floor to a new resource, and one more than its counter to a known one", async ({ one }) => {
    const founded = await one.floor();
    const first = asking("a");
    expect(await one.node.ask("grant", first)).toMatchObject({
      kind: "granted",
      node: "n1",
      token: founded + 1,
      epoch: one.node.epoch(),
    });
    await one.node.ask("grant", asking("b"));
    await one.node.ask("release", first);
    expect(await one.node.ask("grant", asking("a"))).toMatchObject({ kind: "granted", token: founded + 2 });
    expect(await one.node.ask("grant", asking("c"))).toMatchObject({ kind: "granted", token: founded + 3 });
  });

  test("tells who holds the resource and for how long at most, and stores nothing", async ({ one }) => {
    const holder = asking("a", 50_000);
    await one.node.ask("grant", { ...holder, label: "worker|7 @host" });
    const before = await one.floor();
    const answer = await one.node.ask("grant", asking("a"));
    expect(answer).toMatchObject({ kind: "held", node: "n1", resource: "a", holder: "worker|7 @host" });
    expect(answer.kind === "held" && answer.remainingMs).toBeGreaterThan(40_000);
    expect(await one.floor()).toBe(before);
  });

  test("answers the same grant again when the same owner asks again", async ({ one }) => {
    const question = asking(["a", "b"]);
    const first = await one.node.ask("grant", question);
    expect(await one.node.ask("grant", question)).toEqual(first);
  });

  test("takes all of several resources or none, with one token above all of theirs", async ({ one }) => {
    const founded = await one.floor();
    await one.node.ask("raise", { resources: ["b"], token: founded + 40 });
    expect(await one.node.ask("grant", asking(["a", "b", "c"]))).toMatchObject({
      kind: "granted",
      token: founded + 41,
    });
    expect(await one.node.ask("grant", asking(["d", "c", "e"]))).toMatchObject({ kind: "held", resource: "c" });
    expect(await one.node.ask("grant", asking(["d", "e"]))).toMatchObject({ kind: "granted", token: founded + 42 });
  });

  test("T1 one token for several resources is above the highest of theirs, wherever that stands in the list", async ({ one }) => {
    const founded = await one.floor();
    await one.node.ask("raise", { resources: ["high"], token: founded + 40 });
    await one.node.ask("raise", { resources: ["low"], token: founded + 10 });
    for (const [index, resources] of [
      ["high", "low"],
      ["low", "high"],
    ].entries()) {
      const question = asking(resources);
      expect(await one.node.ask("grant", question)).toMatchObject({ kind: "granted", token: founded + 41 + index });
      await one.node.ask("release", question);
    }
    await one.node.ask("raise", { resources: ["low"], token: founded + 60 });
    expect(await one.node.ask("grant", asking(["low", "high"]))).toMatchObject({
      kind: "granted",
      token: founded + 61,
    });
  });

  test("a resource whose counter ran out goes on above the floor", async ({ one }) => {
    await one.node.ask("grant", asking("a", 1));
    await one.redis.del(`{${one.namespace}}:token:a`, `{${one.namespace}}:lock:a`);
    const floor = await one.floor();
    expect(await one.node.ask("grant", asking("a"))).toMatchObject({ token: floor + 1 });
  });

  test("keeps a counter for retentionMs after its last use and a lock for ttlMs", async ({ one }) => {
    await one.node.ask("grant", asking("a", 30_000));
    const [lock = 0, token = 0] = await Promise.all(["lock", "token"].map((kind) => one.redis.pttl(`{${one.namespace}}:${kind}:a`)));
    expect(lock).toBeGreaterThan(20_000);
    expect(lock).toBeLessThanOrEqual(30_000);
    expect(token).toBeGreaterThan(50_000);
    expect(token).toBeLessThanOrEqual(60_000);
  });

  test("L2 leases that are asked for and renewed in one turn last as long as each was asked for", async ({ one }) => {
    const [short, long] = [asking("short", 20_000), asking("long", 60_000)];
    const lastMs = () => Promise.all([short, long].map(({ resources: [name] }) => one.redis.pttl(`{${one.namespace}}:lock:${name}`)));
    await Promise.all([short, long].map((question) => one.node.ask("grant", question)));
    expect(await lastMs()).toEqual([expect.toSatisfy((ms) => ms <= 20_000), expect.toSatisfy((ms) => ms > 40_000)]);
    await Promise.all(
      [
        { ...short, ttlMs: 60_000 },
        { ...long, ttlMs: 20_000 },
      ].map((question) => one.node.ask("extend", question)),
    );
    expect(await lastMs()).toEqual([expect.toSatisfy((ms) => ms > 40_000), expect.toSatisfy((ms) => ms <= 20_000)]);
  });

  test("T2 no token above 999999999999999 is given; the tokens before it are exact to the last digit", async ({ one }) => {
    await one.node.ask("raise", { resources: ["a"], token: 999_999_999_999_997 });
    const question = asking("a");
    expect(await one.node.ask("grant", question)).toMatchObject({ token: 999_999_999_999_998 });
    expect(await one.redis.get(`{${one.namespace}}:token:a`)).toBe("999999999999998");
    await one.node.ask("release", question);
    const last = asking("a");
    expect(await one.node.ask("grant", last)).toMatchObject({ token: 999_999_999_999_999 });
    await one.node.ask("release", last);
    expect(await one.node.ask("grant", asking("a"))).toEqual({
      kind: "unreachable",
      node: "n1",
      cause: "EXHAUSTED: no token is left",
    });
    expect(await one.floor()).toBe(999_999_999_999_999);
  });
});

describe("names", () => {
  const names = [
    "a",
    "a:b",
    "a}:lock:b",
    "{a}",
    "lock:a",
    "token:a",
    "floor",
    "node",
    " ",
    "\0",
    "é",
    "e\u0301",
    "名",
    "😀",
    "a\r\nb",
    "'",
    '"',
    "$0",
  ];

  test("resources with colons, braces, blanks, unicode and control characters are all different resources", async ({ one }) => {
    const similar = [..."_-:{}|/ %.*?[]\\"].map((character) => `orders${character}42`);
    const long = ["x".repeat(512), `${"x".repeat(511)}y`, `${"😀".repeat(128)}`];
    const all = [...names, ...similar, ...long];
    const ballots = await Promise.all(all.map((name) => one.node.ask("grant", asking(name))));
    expect(ballots.map(({ kind }) => kind)).toEqual(all.map(() => "granted"));
    const again = await Promise.all(all.map((name) => one.node.ask("grant", asking(name))));
    expect(again.map((ballot) => ballot.kind === "held" && ballot.resource)).toEqual(all);
    expect(await one.node.ask("inspect", { resources: ["floor"] })).toMatchObject({ kind: "seen", remainingMs: expect.any(Number) });
  });
});

describe("seal", () => {
  test("stores the token for the owner of all resources", async ({ one }) => {
    const question = asking(["a", "b"]);
    await one.node.ask("grant", question);
    const token = (await one.floor()) + 7;
    expect(await one.node.ask("seal", { ...question, token })).toEqual({
      kind: "sealed",
      node: "n1",
      epoch: one.node.epoch(),
    });
    expect(await one.node.ask("inspect", { resources: ["b"] })).toMatchObject({ token });
    expect(await one.floor()).toBe(token);
  });

  test("T2 stores nothing for anybody else, for half an owner, or below what is stored", async ({ one }) => {
    const question = asking("a");
    const granted = await one.node.ask("grant", question);
    const token = granted.kind === "granted" ? granted.token : 0;
    expect(await one.node.ask("seal", { ...asking("a"), token: token + 5 })).toEqual({ kind: "lost", node: "n1" });
    expect(await one.node.ask("seal", { ...question, resources: ["a", "b"], token: token + 5 })).toEqual({
      kind: "lost",
      node: "n1",
    });
    await one.node.ask("raise", { resources: ["a"], token: token + 3 });
    expect(await one.node.ask("seal", { ...question, token: token + 2 })).toEqual({ kind: "lost", node: "n1" });
    expect(await one.node.ask("inspect", { resources: ["a"] })).toMatchObject({ token: token + 3 });
  });
});

describe("extend and heal", () => {
  test("extend renews what is ours and never creates a key", async ({ one }) => {
    const question = asking(["a", "b"], 20_000);
    expect(await one.node.ask("extend", question)).toEqual({ kind: "missing", node: "n1" });
    await one.node.ask("grant", question);
    expect(await one.node.ask("extend", { ...question, ttlMs: 50_000 })).toEqual({ kind: "extended", node: "n1" });
    expect(await one.redis.pttl(`{${one.namespace}}:lock:b`)).toBeGreaterThan(40_000);
    await one.redis.del(`{${one.namespace}}:lock:b`);
    expect(await one.node.ask("extend", question)).toEqual({ kind: "missing", node: "n1" });
    expect(await one.redis.exists(`{${one.namespace}}:lock:b`)).toBe(0);
    await one.node.ask("grant", { ...asking("b"), label: "other" });
    expect(await one.node.ask("extend", question)).toMatchObject({ kind: "taken", holder: "other" });
  });

  test("heal plants the key with its token where there is none, and nowhere else", async ({ one }) => {
    const question = asking(["a", "b"]);
    const token = (await one.floor()) + 9;
    expect(await one.node.ask("heal", { ...question, token })).toEqual({ kind: "extended", node: "n1" });
    expect(await one.node.ask("grant", asking("b"))).toMatchObject({ kind: "held", holder: question.label });
    expect(await one.node.ask("inspect", { resources: ["a"] })).toMatchObject({ token });
    await one.redis.del(`{${one.namespace}}:lock:b`);
    expect(await one.node.ask("heal", { ...question, label: "another label", token })).toEqual({
      kind: "extended",
      node: "n1",
    });
    expect(await one.node.ask("grant", asking("b"))).toMatchObject({ kind: "held", holder: "another label" });
    const other = asking(["b", "c"]);
    expect(await one.node.ask("heal", { ...other, token: token + 1 })).toMatchObject({
      kind: "taken",
      holder: "another label",
    });
    expect(await one.node.ask("inspect", { resources: ["c"] })).toMatchObject({ holder: null, remainingMs: null });
  });

  test("T1 heal leaves a counter that has gone on where it is", async ({ one }) => {
    const token = (await one.floor()) + 9;
    await one.node.ask("raise", { resources: ["a"], token: token + 20 });
    expect(await one.node.ask("heal", { ...asking("a"), token })).toEqual({ kind: "extended", node: "n1" });
    expect(await one.node.ask("inspect", { resources: ["a"] })).toMatchObject({ token: token + 20 });
  });
});

describe("release, inspect and raise", () => {
  test("release deletes only what is ours and leaves the counter", async ({ one }) => {
    const question = asking(["a", "b"]);
    const granted = await one.node.ask("grant", question);
    expect(await one.node.ask("release", { ...question, owner: "somebody" })).toEqual({
      kind: "absent",
      node: "n1",
    });
    expect(await one.node.ask("release", question)).toEqual({ kind: "released", node: "n1", listeners: 0 });
    expect(await one.node.ask("release", question)).toEqual({ kind: "absent", node: "n1" });
    expect(await one.node.ask("inspect", { resources: ["a"] })).toMatchObject({
      holder: null,
      token: granted.kind === "granted" && granted.token,
    });
  });

  test("an owner whose name begins like another's is not that other", async ({ one }) => {
    await one.node.ask("grant", { ...asking("a"), owner: "abc" });
    expect(await one.node.ask("release", { resources: ["a"], owner: "ab", tells: false })).toEqual({
      kind: "absent",
      node: "n1",
    });
    expect(await one.node.ask("release", { resources: ["a"], owner: "", tells: false })).toEqual({
      kind: "absent",
      node: "n1",
    });
  });

  test("raise lifts the counter under any holder, never lowers it, and removes the lock only when asked to", async ({ one }) => {
    const token = (await one.floor()) + 20;
    const question = asking("a");
    await one.node.ask("grant", question);
    const epoch = one.node.epoch();
    expect(await one.node.ask("raise", { resources: ["a"], token })).toEqual({
      kind: "raised",
      node: "n1",
      token,
      epoch,
      removed: null,
    });
    expect(await one.node.ask("raise", { resources: ["a"], token: token + 9, holder: "another" })).toMatchObject({ kind: "kept" });
    expect(await one.node.ask("raise", { resources: ["a"], token: 5, holder: fingerprintOf(question.owner) })).toMatchObject({
      token,
      removed: question.label,
    });
    expect(await one.node.ask("grant", asking("a"))).toMatchObject({ kind: "granted", token: token + 1 });
  });
});

describe("foreign keys", () => {
  test("a request that meets a foreign key fails alone, and its neighbours of the same call do not", async ({ one }) => {
    const name = (kind: string, resource: string) => `{${one.namespace}}:${kind}:${resource}`;
    await one.redis.hset(name("lock", "a"), "x", 1);
    await one.redis.set(name("token", "b"), "much");
    await one.redis.hset(name("token", "c"), "x", 1);
    const ballots = await Promise.all(["a", "b", "ok", "c"].map((resource) => one.node.ask("grant", asking(resource))));
    expect(ballots.map((ballot) => (ballot.kind === "unreachable" ? ballot.cause : ballot.kind))).toEqual([
      "WRONGTYPE: a key of the lock holds something else",
      "FOREIGN: a token key holds something else",
      "granted",
      "WRONGTYPE: a key of the lock holds something else",
    ]);
    expect(await one.redis.exists(name("lock", "b"), name("lock", "c"))).toBe(0);
    expect(await one.redis.hget(name("lock", "a"), "x")).toBe("1");
  });
});

// The short ways of a grant and of a release: one resource that is free, alone or among others of
// one turn, an owner like those that the lock draws. Nearly every question goes this way, so the
// promises are held to it by themselves.

const namespace = "short";
const keys = keysOf(namespace);
const ttlMs = 60_000;

let owners = 0;
const question = (resource = "a") => ({ ...asking(resource, ttlMs), owner: `owner-${++owners}-`.padEnd(22, "x") });

/** One node that has granted the resource before, and a way to look past the lock. */
const short = plain.extend("it", async ({ fleet }, { onCleanup }) => {
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

short("T1 tokens of a known resource rise by one", async ({ it }) => {
  for (let next = it.token + 1; next < it.token + 20; next++) {
    const asked = question();
    expect(await it.node.ask("grant", asked)).toMatchObject({ kind: "granted", token: next });
    expect(await it.node.ask("release", asked)).toEqual({ kind: "released", node: "n1", listeners: 0 });
  }
});

short("T2 a grant says in which epoch it was given, also when the asker believes in another", async ({ it }) => {
  const before = readAdmissionRecord((await it.redis.hget(keys.node, "admitted")) ?? "");
  const call = readFloor("another epoch", before?.generation ?? "");
  await it.redis.eval(call.source, 2, keys.node, keys.marks, ...call.args);
  expect(await it.node.ask("grant", question())).toMatchObject({ kind: "granted", epoch: `${before?.generation}:another epoch` });
});

short("T2 a counter that is older than the last admission does not count", async ({ it }) => {
  await it.redis.set(keys.token("a"), "1000");
  expect(await it.node.ask("grant", question())).toMatchObject({
    kind: "granted",
    token: expect.toSatisfy((token: number) => token >= it.token),
  });
});

short("T1 a counter that leads all others is not forgotten when it runs out", async ({ it }) => {
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

short("L2 a release leaves the lock of another owner alone", async ({ it }) => {
  const [holder, late] = [question(), question()];
  await it.node.ask("grant", holder);
  expect(await it.node.ask("release", late)).toEqual({ kind: "absent", node: "n1" });
  expect(await it.redis.get(keys.lock("a"))).toBe(`${holder.owner}|${holder.label}`);
  expect(await it.node.ask("grant", late)).toMatchObject({ kind: "held" });
});

short("T1 a resource without a counter goes on above the floor, which rises with it, alone and among others", async ({ it }) => {
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

short("T2 among others of one turn, too, a counter that is older than the last admission does not count", async ({ it }) => {
  await it.redis.mset(keys.token("b"), "1000", keys.token("c"), "1000");
  const asked = ["b", "c"].map(question);
  const isAbove = (token: number): boolean => token > it.token - 1;
  expect(await Promise.all(asked.map((each) => it.node.ask("grant", each)))).toMatchObject(
    asked.map(() => ({ kind: "granted", token: expect.toSatisfy(isAbove) })),
  );
});

short.for(["with", "without"])(
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
