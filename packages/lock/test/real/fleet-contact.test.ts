// Connections to one of several fleets break, and are made again, while another fleet stands still
// or answers: what callers and holders of the first one notice of that.
import type { Locker } from "@palisade/lock";
import type { RedisNode } from "@palisade/testkit";
import type { StartFleet } from "@palisade/testkit/vitest";
import { homeIn } from "../../src/protocol/routing.js";
import { aborted, expect, failure, listen, type OpenLocker, test, timed, until } from "./lock-test.js";

/** No test waits for it unless it waits for a node that stands still. */
const connectTimeoutMs = 10_000;
const patient = { timeout: 90_000 };
const inEast = Array.from({ length: 30 }, (_, i) => `orders/${i}`).filter(
  (name) => homeIn([{ name: "east" }, { name: "west" }], name)?.name === "east",
);
const [wanted = "", other = ""] = inEast;

async function two(fleet: StartFleet, open: OpenLocker) {
  const { urls, nodes } = await fleet({ nodes: 6 });
  const fleets = { east: urls.slice(0, 3), west: urls.slice(3) };
  const opened = (options: { readonly ttlMs?: number; readonly nodeTimeoutMs?: number } = {}): Locker =>
    open({ fleets, ttlMs: 30_000, maxTtlMs: 30_000, nodeTimeoutMs: 500, connectTimeoutMs, waitMs: 30_000, ...options });
  return { east: nodes.slice(0, 3), west: nodes.slice(3), opened };
}

/** Of all lockers, without those that only listen. */
async function connectionsOf(node: RedisNode): Promise<readonly string[]> {
  const lines = String(await node.cli("CLIENT", "LIST")).split("\n");
  return lines.flatMap((line) => (line.includes(" name=palisade:") ? (/^id=(\d+) /.exec(line)?.[1] ?? []) : []));
}

/** Ends these connections, or all, and resolves when there are as many again. */
async function flap(node: RedisNode, besides: readonly string[] = []): Promise<void> {
  const before = await connectionsOf(node);
  const ended = before.filter((id) => !besides.includes(id));
  for (const id of ended) await node.cli("CLIENT", "KILL", "ID", id);
  const isBack = async (): Promise<boolean> => {
    const now = await connectionsOf(node);
    return now.length >= before.length && !ended.some((id) => now.includes(id));
  };
  await until(isBack, "its connections were made again", 20_000);
}

const paused = (nodes: readonly RedisNode[]): Promise<unknown> => Promise.all(nodes.map((node) => node.pause()));
const resumed = (nodes: readonly RedisNode[]): Promise<unknown> => Promise.all(nodes.map((node) => node.resume()));

test(
  "W1 a caller whose connections to one of several fleets break keeps its place before one who came later",
  patient,
  async ({ fleet, open }) => {
    const { east, opened } = await two(fleet, open);
    const [holder, second] = [opened(), opened()];
    const lease = await holder.acquire(wanted);
    await (await second.acquire(other)).release();
    const theirs = await Promise.all(east.map(connectionsOf));
    const waiting = async (): Promise<number> =>
      Math.min(...(await Promise.all(east.map(async (node) => Number(await node.cli("HLEN", `{palisade}:queue:${wanted}`))))));
    const order: string[] = [];
    const first = opened().using(wanted, async () => order.push("first"));
    await until(async () => (await waiting()) === 1, "the first one waits", 20_000);
    const own = await Promise.all(east.map(connectionsOf));
    const later = second.using(wanted, async () => order.push("second"));
    await until(async () => (await waiting()) === 2, "the second one waits", 20_000);
    // Its connections for listening belong to nobody here.
    const kept = await Promise.all(
      east.map(async (node, i) => (await connectionsOf(node)).filter((id) => theirs[i]?.includes(id) || !own[i]?.includes(id))),
    );
    using asked = listen<{ readonly resources: readonly string[] }>("attempt", ({ resources }) => resources.includes(wanted));
    await Promise.all(east.map((node, i) => flap(node, kept[i])));
    const soFar = asked.events.length;
    await until(() => asked.events.length > soFar, "it has asked again", 30_000);
    await lease.release();
    await Promise.all([first, later]);
    expect(order).toEqual(["first", "second"]);
  },
);

test(
  "W1 one node of several that is met again and again makes nobody wait for the word of another fleet",
  patient,
  async ({ fleet, open }) => {
    const { east, west, opened } = await two(fleet, open);
    const locker = opened();
    await (await locker.acquire(wanted)).release();
    await paused(west);
    for (let times = 0; times < 3; times++) for (const node of east.slice(0, 1)) await flap(node);
    await locker.ready();
    const { tookMs, result } = await timed(() => locker.tryAcquire(wanted));
    await resumed(west);
    expect(result).toMatchObject({ ok: true });
    expect(tookMs).toBeLessThan(connectTimeoutMs / 2);
  },
);

test(
  "W1 one node of each fleet that stands still delays no caller, neither after connections broke nor at the start",
  patient,
  async ({ fleet, open }) => {
    const { east, west, opened } = await two(fleet, open);
    const locker = opened();
    await (await locker.acquire(wanted)).release();
    await paused(west.slice(0, 1));
    await Promise.all(east.map((node) => flap(node)));
    await locker.ready();
    for (const each of [locker, opened()]) {
      const { tookMs, result } = await timed(() => each.acquire(wanted, { waitMs: 0 }));
      expect(tookMs).toBeLessThan(connectTimeoutMs / 2);
      await result.release();
    }
    await resumed(west.slice(0, 1));
  },
);

test(
  "W1 L2 while a fleet stands still that was to say whether there is a newer list, callers come back when they gave up, and nobody is granted",
  patient,
  async ({ fleet, open }) => {
    const { east, west, opened } = await two(fleet, open);
    const locker = opened();
    await (await locker.acquire(wanted)).release();
    await paused(west);
    await Promise.all(east.map((node) => flap(node)));
    await locker.ready();
    const { tookMs, result } = await timed(() =>
      Promise.all([
        failure(locker.acquire(wanted, { signal: AbortSignal.timeout(100) })),
        failure(opened().acquire(wanted, { signal: AbortSignal.timeout(100) })),
        failure(locker.acquire(other, { waitMs: 0 })),
        locker.tryAcquire(other),
      ]),
    );
    const closing = failure(locker.acquire(wanted));
    await locker.close();
    const why = /^fleet east was met just now, and fleet west has not said whether there is a newer list$/;
    expect(result).toMatchObject([
      { code: "LOCK_ABORTED" },
      { code: "LOCK_ABORTED" },
      { code: "LOCK_NO_QUORUM", message: expect.stringMatching(why) },
      { ok: false, reason: "no_quorum", message: expect.stringMatching(why) },
    ]);
    expect(tookMs).toBeLessThan(connectTimeoutMs / 2);
    expect(await closing).toMatchObject({ code: "LOCK_ABORTED" });
    await resumed(west);
  },
);

test(
  "L2 a lease that is not renewed since another fleet has not said whether there is a newer list is lost for that cause",
  patient,
  async ({ fleet, open }) => {
    const { east, west, opened } = await two(fleet, open);
    const lease = await opened({ ttlMs: 3_000, nodeTimeoutMs: 250 }).acquire(wanted, { renew: true });
    await paused(west);
    await Promise.all(east.map((node) => flap(node)));
    await aborted(lease.signal);
    await resumed(west);
    expect(lease.signal.reason).toMatchObject({
      code: "LEASE_LOST",
      message: expect.stringMatching(/could not be renewed, because fleet east was met just now, and fleet west has not said/),
    });
  },
);
