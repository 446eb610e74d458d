// What a node that cannot vote is called, and how connections are made: whatever is configured
// wrongly is named, and nothing is left unhandled.

import type { RedisNode } from "@palisade/testkit";
import { Redis } from "ioredis";
import { onTestFinished, vi } from "vitest";
import type { NodeSource } from "../../../src/protocol/node.js";
import { describe, expect, test } from "../lock-test.js";
import { certified, encrypting, speakingServer } from "./middlemen.js";
import { asking, opened, TICKET, waiting } from "./opened-fleet.js";

const namespace = "connecting";

function withUser(url: string, user: string): string {
  return url.replace("redis://", `redis://${user}@`);
}

describe("a node that cannot be asked", () => {
  test("says that no server listens there", async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    await nodes[0]?.kill();
    await using lock = await opened(urls, { namespace });
    expect(await lock.node("n1").ask("grant", asking("a"))).toEqual({
      kind: "unreachable",
      node: "n1",
      cause: "ECONNREFUSED",
      unsent: true,
    });
    expect(lock.fleet.state().unreachable).toEqual([{ node: "n1", cause: "ECONNREFUSED" }]);
  });

  test("says that a password is missing or wrong, and never shows it", async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    await nodes[0]?.cli("CONFIG", "SET", "requirepass", "right");
    const [url = ""] = urls;
    await using none = await opened([url], { namespace });
    expect(await none.node("n1").ask("grant", asking("a"))).toMatchObject({
      cause: "NOAUTH: the server asks for a password and none was configured",
    });
    await using wrong = await opened([withUser(url, ":s3cret")], { namespace });
    expect(await wrong.node("n1").ask("grant", asking("a"))).toMatchObject({
      cause: "WRONGPASS: user name or password refused",
    });
    await using right = await opened([withUser(url, ":right")], { namespace });
    expect(await right.node("n1").ask("grant", asking("a"))).toMatchObject({ kind: "granted" });
    const told = JSON.stringify([wrong.events, wrong.fleet.state(), await wrong.fleet.probe(), right.node("n1").address]);
    expect(told).not.toMatch(/s3cret|right/);
  });

  test("says that it is a replica, and votes once it is a master", async ({ fleet }) => {
    const servers = await fleet({ nodes: 2 });
    const [url = ""] = servers.urls;
    const first = servers.node("n1");
    await first.follow(servers.node("n2"));
    await using lock = await opened([url], { namespace });
    const cause = "READONLY: a replica; the lock needs the address of its master";
    expect(await lock.node("n1").ask("grant", asking("a"))).toEqual({
      kind: "unreachable",
      node: "n1",
      cause,
      unsent: true,
    });
    expect(await lock.fleet.probe()).toContainEqual(expect.objectContaining({ severity: "error", node: "n1", code: "replica" }));
    await first.cli("REPLICAOF", "NO", "ONE");
    const question = asking("a");
    await expect.poll(() => lock.node("n1").ask("grant", question)).toMatchObject({ kind: "granted" });
  });

  test("says which permission is missing", async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    const all = ["on", ">p", "~*", "&*", "+@all"];
    await nodes[0]?.cli("ACL", "SETUSER", "blind", ...all, "-info");
    await nodes[0]?.cli("ACL", "SETUSER", "mute", ...all, "-eval");
    const [url = ""] = urls;
    await using blind = await opened([withUser(url, "blind:p")], { namespace });
    expect(await blind.node("n1").ask("grant", asking("a"))).toMatchObject({
      cause: expect.stringMatching(/^NOPERM: the user lacks a permission/),
    });
    await using mute = await opened([withUser(url, "mute:p")], { namespace });
    expect(await mute.node("n1").ask("grant", asking("a"))).toMatchObject({
      cause: "NOPERM: the user lacks a permission the lock needs (+eval)",
    });
    expect(await mute.fleet.probe()).toContainEqual(expect.objectContaining({ severity: "error", code: "acl" }));
  });

  test("works for a user who may do only what the lock needs", async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    const commands =
      "+eval +evalsha +info +time +get +set +exists +incr +decr +del +pttl +pexpire +hget +hgetall +hset +hdel +hmget +publish +zadd +zcard +zrange +zrank +zrem +zscore +subscribe";
    await nodes[0]?.cli("ACL", "SETUSER", "least", "on", ">p", `~{${namespace}}:*`, `&{${namespace}}:*`, "-@all", ...commands.split(" "));
    await using lock = await opened([withUser(urls[0] ?? "", "least:p")], { namespace });
    const question = asking("a");
    expect(await lock.node("n1").ask("grant", question)).toMatchObject({ kind: "granted" });
    expect(await lock.node("n1").ask("extend", question)).toMatchObject({ kind: "extended" });
    const heard: string[] = [];
    lock.node("n1").onReleased(TICKET, {
      listening: () => heard.push("listening"),
      released: () => heard.push("released"),
      deaf: () => {},
    });
    await expect.poll(() => heard).toEqual(["listening"]);
    // Refused, it has a ticket.
    expect(await lock.node("n1").ask("claim", { ...asking("a"), ...waiting() })).toMatchObject({ kind: "held", place: 1 });
    expect(await lock.node("n1").ask("release", { ...question, tells: true })).toMatchObject({
      kind: "released",
      listeners: 1,
    });
    await expect.poll(() => heard).toEqual(["listening", "released"]);
    expect(await lock.fleet.probe()).toContainEqual(expect.objectContaining({ severity: "info", code: "settings_hidden" }));
  });

  test("says that something else than Redis answers there", async () => {
    await using web = await speakingServer(() => "HTTP/1.1 400 Bad Request\r\n\r\n");
    await using lock = await opened([web.url], { namespace });
    expect(await lock.node("n1").ask("grant", asking("a"))).toMatchObject({
      cause: "garbage reply: not a Redis server",
    });
    expect(await lock.fleet.probe()).toContainEqual(expect.objectContaining({ code: "not_redis" }));
  });

  test("says that its answers are not those of the lock's scripts", async () => {
    await using other = await speakingServer((commands) => "+OK\r\n".repeat(commands));
    await using lock = await opened([other.url], { namespace });
    expect(await lock.node("n1").ask("grant", asking("a"))).toMatchObject({ cause: 'garbage reply "OK"' });
  });

  test("says that it is too old", async () => {
    const words = ["0123abcd", "6.0.16", "master", "0", "1700000000000", ...Array.from({ length: 8 }, () => "")];
    const reply = `*14\r\n${[...words, ""].map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;
    await using old = await speakingServer((commands) => reply.repeat(commands));
    await using lock = await opened([old.url], { namespace });
    expect(await lock.node("n1").ask("grant", asking("a"))).toMatchObject({
      cause: "version 6.0.16 is too old: Redis 7 or newer, or Valkey, is needed",
    });
    expect(await lock.fleet.probe()).toContainEqual(expect.objectContaining({ code: "version" }));
  });

  test("a server that accepts connections and never says a word is unreachable after connectTimeoutMs", async () => {
    await using silent = await speakingServer(() => "");
    await using lock = await opened([silent.url], { namespace, connectTimeoutMs: 100 });
    // A process that stands still just then gives its connection up, and makes another one.
    const question = asking("a");
    await expect.poll(() => lock.node("n1").ask("grant", question)).toMatchObject({ cause: "TIMEOUT: no answer for 100 ms" });
  });
});

// Over TLS, with options and with instances of ioredis: ioredis makes the connection and the lock speaks
// on it (docs/decisions/0006). The instances stay their owner's.

interface Way {
  readonly through: (node: RedisNode) => Promise<NodeSource>;
}

function untilTheEnd<Opened extends AsyncDisposable>(opened: Opened): Opened {
  onTestFinished(() => opened[Symbol.asyncDispose]());
  return opened;
}

/** It is used by nobody, and would connect by itself if it were. */
function instanceOf(options: Readonly<Record<"host" | "username" | "password", string>> & { port: number; tls: { ca: string } }): Redis {
  const instance = new Redis({ ...options, lazyConnect: true });
  onTestFinished(() => {
    expect(instance.status).toBe("wait");
    instance.disconnect();
  });
  return instance;
}

const placeOf = (url: string) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) });

const ways: Readonly<Record<string, Way>> = {
  TLS: {
    through: async (node) => ({ ...placeOf(untilTheEnd(await encrypting(node.url)).url), tls: { ca: certified.cert } }),
  },
  "instances with a user, over TLS": {
    through: async (node) => {
      await node.cli("ACL", "SETUSER", "lock", "on", ">s3cret", "~*", "&*", "+@all");
      const way = placeOf(untilTheEnd(await encrypting(node.url)).url);
      return instanceOf({ ...way, username: "lock", password: "s3cret", tls: { ca: certified.cert } });
    },
  },
};

describe("over nodes that are reached", () => {
  test.for(Object.entries(ways))(
    "T1 L2 W1 through %s a lease is granted, refused to others, renewed, handed to a waiter, and taken again after a cut",
    async ([, { through }], { fleet, open }) => {
      const commands = vi.spyOn(Redis.prototype, "evalsha");
      const { nodes } = await fleet({ nodes: 3 });
      const sources = await Promise.all(nodes.map(through));
      const [first, second] = [open({ nodes: sources }), open({ nodes: sources })];
      const lease = await first.acquire("orders/42");
      expect(await second.tryAcquire("orders/42")).toMatchObject({ ok: false, reason: "held" });
      expect(await lease.extend(9_000)).toMatchObject({ outcome: "renewed" });
      const waiting = second.acquire("orders/42", { waitMs: 60_000 });
      await expect.poll(async () => (await Promise.all(nodes.map(channelsOf))).every((channels) => channels.length > 0)).toBe(true);
      expect((await lease.release()).outcome).toBe("free");
      const next = await waiting;
      expect(next.token).toBeGreaterThan(lease.token);
      for (const node of nodes) node.cut();
      await expect.poll(async () => (await next.extend()).outcome).toBe("renewed");
      await next.release();
      expect((await first.acquire("orders/42")).token).toBeGreaterThan(next.token);
      expect(commands).not.toHaveBeenCalled();
    },
  );
});

async function channelsOf(node: RedisNode): Promise<readonly unknown[]> {
  return (await node.cli("PUBSUB", "CHANNELS", "*:inbox:*")) as readonly unknown[];
}
