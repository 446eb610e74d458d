// The short way of a grant and of a release: one resource that the node knows, an owner like those
// that the lock draws. Nearly every question goes this way, so the promises are held to it by
// themselves.
import { expect, test as plain } from "@palisade/testkit/vitest";
import { Redis } from "ioredis";
import { readAdmissionRecord } from "../../../src/redis/admission-record.js";
import { keysOf } from "../../../src/redis/keys.js";
import { readFloor } from "../../../src/redis/node-record.js";
import { asking, opened } from "./opened-fleet.js";

const namespace = "short";
const keys = keysOf(namespace);
const ttlMs = 60_000;

let owners = 0;
const question = () => ({ ...asking("a", ttlMs), owner: `owner-${++owners}-`.padEnd(22, "x") });

/** One node that has granted the resource before, and a way to look past the lock. */
const test = plain.extend("it", async ({ fleet }, { onCleanup }) => {
  const servers = await fleet({ nodes: 1, appendfsync: "no" });
  const lock = await opened(servers.urls, { namespace, maxTtlMs: ttlMs });
  const redis = new Redis(servers.nodes[0]?.directUrl ?? "");
  onCleanup(() => redis.disconnect());
  const node = lock.node("n1");
  const first = question();
  const granted = await node.grant(first);
  await node.release(first);
  const base = Number(await redis.hget(keys.node, "floor"));
  return { redis, node, base, token: granted.kind === "granted" ? granted.token : 0 };
});

test("T1 tokens of a known resource rise by one", async ({ it }) => {
  for (let next = it.token + 1; next < it.token + 20; next++) {
    const asked = question();
    expect(await it.node.grant(asked)).toMatchObject({ kind: "granted", token: next });
    expect(await it.node.release(asked)).toEqual({ kind: "released", node: "n1", listeners: 0 });
  }
});

test("T2 a grant says in which epoch it was given, also when the asker believes in another", async ({ it }) => {
  const before = readAdmissionRecord((await it.redis.hget(keys.node, "admitted")) ?? "", "2");
  const call = readFloor(keys, "another epoch", before?.generation ?? "");
  await it.redis.eval(call.source, call.keys.length, ...call.keys, ...call.args);
  expect(await it.node.grant(question())).toMatchObject({ kind: "granted", epoch: `${before?.generation}:another epoch` });
});

test("T2 a counter that is older than the last admission does not count", async ({ it }) => {
  await it.redis.set(keys.token("a"), "1000");
  expect(await it.node.grant(question())).toMatchObject({
    kind: "granted",
    token: expect.toSatisfy((token: number) => token >= it.token),
  });
});

test("T1 a counter that leads all others is not forgotten when it runs out", async ({ it }) => {
  const high = it.base + 1_000;
  await it.redis.set(keys.token("a"), String(high));
  const asked = question();
  expect(await it.node.grant(asked)).toMatchObject({ kind: "granted", token: high + 1 });
  await it.node.release(asked);
  await it.redis.del(keys.token("a"));
  expect(await it.node.grant(question())).toMatchObject({
    kind: "granted",
    token: expect.toSatisfy((token: number) => token > high + 1),
  });
});

test("L2 a release leaves the lock of another owner alone", async ({ it }) => {
  const [holder, late] = [question(), question()];
  await it.node.grant(holder);
  expect(await it.node.release(late)).toEqual({ kind: "absent", node: "n1" });
  expect(await it.redis.get(keys.lock("a"))).toBe(`${holder.owner}|${holder.label}`);
  expect(await it.node.grant(late)).toMatchObject({ kind: "held" });
});
