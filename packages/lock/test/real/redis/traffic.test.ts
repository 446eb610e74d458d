// How questions travel to one node: together, in order, bounded, answered in time; and what becomes
// of them when the connection breaks.
import { spawnSync } from "node:child_process";
import type { RedisNode as TestNode } from "@palisade/testkit";
import { describe, expect, type StartFleet, test } from "@palisade/testkit/vitest";
import { delayingNetwork } from "./middlemen.js";
import { asking, opened } from "./opened-fleet.js";

const namespace = "traffic";

async function callsOf(server: TestNode): Promise<number> {
  const stats = String(await server.cli("INFO", "commandstats"));
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

function keysLeft(server: TestNode): Promise<unknown> {
  return server.cli("KEYS", `{${namespace}}:lock:*`);
}

/** Blocks this process until the server has executed so many calls: another process looks. */
function standStillUntil(calls: number, { directUrl }: TestNode): void {
  const { hostname, port } = new URL(directUrl);
  const look = `
    const socket = require("node:net").connect(${port}, "${hostname}");
    const ask = () => socket.write("INFO commandstats\\r\\n");
    socket.on("connect", ask).on("data", (bytes) => {
      if (Number(/cmdstat_evalsha:calls=(\\d+)/.exec(bytes)?.[1]) >= ${calls}) process.exit();
      setTimeout(ask, 5);
    });`;
  expect(spawnSync(process.execPath, ["-e", look], { timeout: 20_000 })).toMatchObject({ status: 0 });
}

/** The connections of the lock, as the server numbers them. */
async function clientsOf(server: TestNode): Promise<string[]> {
  const list = String(await server.cli("CLIENT", "LIST"));
  return [...list.matchAll(/id=(\d+) .*name=palisade:traffic /g)].map(([, id]) => id ?? "");
}

async function oneNode(fleet: StartFleet, options: { readonly nodeTimeoutMs?: number } = {}) {
  const { urls, nodes } = await fleet({ nodes: 1 });
  const lock = await opened(urls, { namespace, ...options });
  return { server: nodes[0] as TestNode, lock, node: lock.node("n1") };
}

describe("together", () => {
  test("what is asked in one turn of the event loop travels as one script call per kind of request, 256 requests at most", async ({
    fleet,
  }) => {
    const { server, node } = await oneNode(fleet);
    const before = await callsOf(server);
    const questions = Array.from({ length: 100 }, (_unused, index) => asking(`a${index}`));
    await Promise.all(questions.map((question) => node.ask("grant", question)));
    expect(await callsOf(server)).toBe(before + 1);
    // Callers that go on when answered, each in a microtask of its own, travel together again.
    await Promise.all(
      questions.map(async (question) => {
        await node.ask("release", question);
        await Promise.resolve();
        await node.ask("grant", question);
      }),
    );
    expect(await callsOf(server)).toBe(before + 3);
    await Promise.all(Array.from({ length: 600 }, (_unused, index) => node.ask("grant", asking(`b${index}`))));
    expect(await callsOf(server)).toBe(before + 6);
  });

  test("questions of one turn are executed in the order in which they were asked", async ({ fleet }) => {
    const { server, node } = await oneNode(fleet);
    const [first, second] = [asking("a"), asking("a")];
    const ballots = await Promise.all([
      node.ask("grant", first),
      node.ask("release", first),
      node.ask("grant", second),
      node.ask("extend", first),
      node.ask("release", second),
    ]);
    expect(ballots.map(({ kind }) => kind)).toEqual(["granted", "released", "granted", "taken", "released"]);
    expect(await keysLeft(server)).toEqual([]);
  });
});

describe("in time", () => {
  test("a node that does not answer is unreachable after nodeTimeoutMs, and at once while it stays silent", async ({ fleet }) => {
    // After ten times as long the connection is given up.
    const { server, node } = await oneNode(fleet, { nodeTimeoutMs: 500 });
    const clients = await clientsOf(server);
    server.holdReplies();
    const askedAt = performance.now();
    expect(await node.ask("grant", asking("a"))).toEqual({
      kind: "unreachable",
      node: "n1",
      cause: "TIMEOUT after 500 ms",
    });
    expect(performance.now() - askedAt).toBeGreaterThanOrEqual(499);
    const calls = await callsOf(server);
    expect(await node.ask("grant", asking("b"))).toMatchObject({
      kind: "unreachable",
      cause: expect.stringMatching(/^TIMEOUT: silent for \d+ ms$/),
    });
    expect(await callsOf(server)).toBe(calls);
    server.deliver();
    await expect.poll(() => node.ask("inspect", { resources: ["a"] })).toMatchObject({ kind: "seen" });
    expect(await clientsOf(server)).toEqual(clients);
  });

  test("a release that is sent after a grant timed out arrives behind it, on the same connection", async ({ fleet }) => {
    const { server, node } = await oneNode(fleet, { nodeTimeoutMs: 600 });
    server.holdRequests();
    const question = asking("a");
    expect(await node.ask("grant", question)).toMatchObject({ kind: "unreachable" });
    const released = node.ask("release", question);
    server.deliver();
    expect(await released).toEqual({ kind: "released", node: "n1", listeners: 0 });
    expect(await keysLeft(server)).toEqual([]);
  });

  test("an answer that arrived while our own event loop stood still is not too late", async ({ fleet }) => {
    // Past the proxy, which stands in this very process.
    const { nodes } = await fleet({ nodes: 1 });
    await using lock = await opened([nodes[0]?.directUrl ?? ""], { namespace, nodeTimeoutMs: 40 });
    const server = nodes[0] as TestNode;
    const calls = await callsOf(server);
    const asked = lock.node("n1").ask("grant", asking("a"));
    // Let it be sent, then stand still until the answer is there, and long past the timeout.
    await new Promise((resolve) => setImmediate(resolve));
    const until = performance.now() + 200;
    standStillUntil(calls + 1, server);
    while (performance.now() < until);
    expect(await asked).toMatchObject({ kind: "granted" });
  });

  test("a node that goes on being asked without answering is given all of it, and all it was given is given back", async ({ fleet }) => {
    const { server, node } = await oneNode(fleet, { nodeTimeoutMs: 20_000 });
    server.holdRequests();
    const questions = Array.from({ length: 9_000 }, (_unused, index) => asking(`a${index}`));
    const grants = Promise.all(questions.map((question) => node.ask("grant", question)));
    const releases = Promise.all(questions.map((question) => node.ask("release", question)));
    server.deliver();
    expect(new Set((await grants).map(({ kind }) => kind))).toEqual(new Set(["granted"]));
    expect(new Set((await releases).map(({ kind }) => kind))).toEqual(new Set(["released"]));
    await expect.poll(() => keysLeft(server)).toEqual([]);
  });
});

describe("refused", () => {
  const whatIsReleased = [
    ["two in one call", [asking("a"), asking("b")]],
    ["of several resources", [asking(["a", "b"])]],
    ["of a lock that others wait for", [asking("a")]],
    ["one alone", [asking("a")]],
  ] as const;

  test.for(whatIsReleased)("W1 a release that the node refuses is sent until it is executed: %s", async ([which, leases], { fleet }) => {
    const { server, node } = await oneNode(fleet);
    for (const lease of leases) await node.ask("grant", lease);
    if (which.includes("wait")) expect(await node.ask("grant", asking("a"))).toMatchObject({ kind: "held" });
    await server.cli("CONFIG", "SET", "min-replicas-to-write", "1");
    const released = await Promise.all(leases.map((lease) => node.ask("release", lease)));
    for (const ballot of released) expect(ballot).toMatchObject({ kind: "unreachable", cause: expect.stringMatching(/^NOREPLICAS/) });
    // Not in a hot loop meanwhile, whatever else is asked.
    const calls = await callsOf(server);
    for (let i = 0; i < 20; i++) await node.ask("inspect", { resources: ["c"] });
    expect(await callsOf(server)).toBeLessThan(calls + 30);
    expect(await keysLeft(server)).not.toEqual([]);
    await server.cli("CONFIG", "SET", "min-replicas-to-write", "0");
    await expect.poll(() => keysLeft(server), { timeout: 10_000 }).toEqual([]);
  });
});

describe("over breaks", () => {
  test("a killed node is unreachable with its cause at once, and what was released meanwhile is released when it is back", async ({
    fleet,
  }) => {
    const { server, node } = await oneNode(fleet, { nodeTimeoutMs: 5_000 });
    const question = asking("a");
    await node.ask("grant", question);
    await server.pause();
    const asked = node.ask("extend", question);
    await server.kill();
    expect(await asked).toMatchObject({
      kind: "unreachable",
      cause: expect.stringMatching(/^(ECONNRESET|connection lost)$/),
    });
    expect(await node.ask("release", question)).toMatchObject({ kind: "unreachable" });
    await expect
      .poll(() => node.ask("grant", asking("a")))
      .toEqual({ kind: "unreachable", node: "n1", cause: "ECONNREFUSED", unsent: true });
    await server.restart();
    await expect.poll(() => keysLeft(server)).toEqual([]);
  });

  test("a node that has gone silent gets a new connection, on which a grant without an answer is given back", async ({ fleet }) => {
    const { server, lock, node } = await oneNode(fleet, { nodeTimeoutMs: 20 });
    server.dropReplies();
    const question = asking("a");
    expect(await node.ask("grant", question)).toMatchObject({ kind: "unreachable" });
    await expect.poll(() => keysLeft(server)).toHaveLength(1);
    const released = node.ask("release", question);
    expect(await lock.heard("disconnected", "n1")).toMatchObject({ cause: "TIMEOUT: silent for 500 ms" });
    expect(await released).toMatchObject({ kind: "unreachable" });
    await server.heal();
    await expect.poll(() => keysLeft(server)).toEqual([]);
    const next = asking("a");
    await expect.poll(() => node.ask("grant", next)).toMatchObject({ kind: "granted" });
  });

  test("a grant that was on its way when its connection was given up is never executed", async ({ fleet }) => {
    const { nodes } = await fleet({ nodes: 1 });
    const server = nodes[0] as TestNode;
    await using network = await delayingNetwork(server.directUrl);
    await using lock = await opened([network.url], { namespace, nodeTimeoutMs: 20 });
    const node = lock.node("n1");
    network.keepPresent();
    const question = asking("a");
    expect(await node.ask("grant", question)).toMatchObject({ kind: "unreachable" });
    await lock.heard("disconnected", "n1");
    await node.ask("release", question);
    // A new socket is in use, and only now the network delivers what the old one had sent.
    const next = asking("b");
    await expect.poll(() => node.ask("grant", next)).toMatchObject({ kind: "granted" });
    await network.deliver();
    expect(await keysLeft(server)).toEqual([`{${namespace}}:lock:b`]);
  });

  test("a server that forgot the script is taught it again, and a release never arrives before its grant", async ({ fleet }) => {
    const { server, node } = await oneNode(fleet);
    await server.cli("SCRIPT", "FLUSH");
    expect(await node.ask("grant", asking("a"))).toMatchObject({ kind: "granted" });
    await server.cli("SCRIPT", "FLUSH");
    const question = asking("b");
    const granted = node.ask("grant", question);
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([granted, node.ask("release", question)]);
    await node.ask("inspect", { resources: ["b"] });
    expect(await keysLeft(server)).toEqual([`{${namespace}}:lock:a`]);
  });

  test("closing sends the last releases and then nothing is heard any more", async ({ fleet }) => {
    const { server, lock, node } = await oneNode(fleet);
    const question = asking("a");
    await node.ask("grant", question);
    const released = node.ask("release", question);
    await lock.fleet.close();
    expect(await released).toMatchObject({ kind: "released" });
    expect(await node.ask("grant", asking("a"))).toEqual({
      kind: "unreachable",
      node: "n1",
      cause: "closed",
      unsent: true,
    });
    expect(await keysLeft(server)).toEqual([]);
  });
});
