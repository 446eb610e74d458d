// Nodes that are dead, frozen, slow, deaf or one-way: what a caller is told, and what is left on
// the nodes. Each test breaks a fleet of its own.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type AttemptEvent, channelNames, type LockError, type Locker, type NodeEvent } from "@palisade/lock";
import { describe, expect, failure, fleetHolders, test, timed, until } from "./lock-test.js";

const key = "{palisade}:lock:r";

/** No node has the lock: neither now nor when what was on its way has arrived. */
async function nothingLeft(fleet: Parameters<typeof fleetHolders>[0], resource = "r"): Promise<void> {
  await until(async () => (await fleetHolders(fleet, resource)).every((holder) => holder === null), `nothing is left of ${resource}`);
}

async function takeAndGiveBack(locker: Locker): Promise<void> {
  await (await locker.acquire("warm-up")).release();
}

describe("nodes that are down", () => {
  test("two of five: the lease is granted, and the two are reported", async ({ own }) => {
    const { nodes, locker } = await own(5);
    await locker.ready();
    await Promise.all([nodes[1]?.kill(), nodes[3]?.kill()]);
    const events: AttemptEvent[] = [];
    const onEvent = (event: unknown): void => void events.push(event as AttemptEvent);
    subscribe(channelNames.attempt, onEvent);
    const attempt = await locker.tryAcquire("r");
    if (!attempt.ok) throw new Error(attempt.message);
    await until(() => events.some(({ resources }) => resources[0] === "r"), "the attempt is reported");
    unsubscribe(channelNames.attempt, onEvent);
    const event = events.find(({ resources }) => resources[0] === "r");
    expect(event).toMatchObject({ outcome: "won", token: attempt.lease.token });
    const down = { kind: "unreachable", cause: expect.any(String) };
    expect(event?.ballots.filter(({ kind }) => kind === "unreachable")).toMatchObject([
      { ...down, node: "n2" },
      { ...down, node: "n4" },
    ]);
    expect(attempt.lease.ballots.filter(({ kind }) => kind === "granted")).toHaveLength(3);
    expect((await attempt.lease.extend()).outcome).toBe("renewed");
    expect((await attempt.lease.release()).outcome).toBe("free");
  });

  test("three of five: LOCK_NO_QUORUM, naming nodes and causes, and never LOCK_HELD", async ({ own }) => {
    const { running, locker } = await own(5);
    await locker.ready();
    await Promise.all([0, 2, 4].map((i) => running.nodes[i]?.kill()));
    const error = (await failure(locker.acquire("r", { waitMs: 50 }))) as LockError;
    expect(error).toMatchObject({ code: "LOCK_NO_QUORUM", resource: "r" });
    expect(error.message).toMatch(/^[0-2] of 5 nodes granted r, 3 needed; .*unreachable \(.+\)/);
    const unreachable = error.ballots.filter(({ kind }) => kind === "unreachable");
    expect(unreachable.map(({ node }) => node)).toEqual(["n1", "n3", "n5"]);
    // A name is a place in the list of nodes; the address is where to look.
    for (const i of [0, 2, 4]) expect(error.message).toContain(`n${i + 1} (${new URL(running.urls[i] ?? "").host})`);
    const attempt = await locker.tryAcquire("r");
    expect(attempt).toMatchObject({ ok: false, reason: "no_quorum" });
    expect(attempt).not.toHaveProperty("retryAfterMs");
    const alive = running.nodes.filter((_, i) => i % 2 === 1);
    await until(
      async () => (await Promise.all(alive.map((node) => node.cli("GET", key)))).every((holder) => holder === null),
      "it is given back",
    );
  });
});

describe("ties and splits", () => {
  test("a tie of two nodes is lost at once, without waiting for a time-out", async ({ own }) => {
    const { running, locker } = await own(2, { nodeTimeoutMs: 10_000 });
    await takeAndGiveBack(locker);
    await running.nodes[1]?.cli("SET", key, "stranger|somebody else", "PX", "60000");
    const { tookMs, result } = await timed(() => locker.tryAcquire("r"));
    expect(result).toMatchObject({ ok: false, reason: "held" });
    expect(tookMs).toBeLessThan(8_000);
    await until(async () => (await running.nodes[0]?.cli("GET", key)) === null, "our part is given back");
  });

  test("one's own leftovers of a lost attempt do not make the next one fail", async ({ own }) => {
    const { running, locker } = await own(5);
    await takeAndGiveBack(locker);
    const strangers = [0, 1, 2];
    await Promise.all(strangers.map((i) => running.nodes[i]?.cli("SET", key, "stranger|somebody else", "PX", "60000")));
    for (let i = 0; i < 5; i++) expect(await locker.tryAcquire("r")).toMatchObject({ ok: false, reason: "held" });
    await running.nodes[0]?.cli("DEL", key);
    expect((await locker.tryAcquire("r")).ok).toBe(true);
  });
});

describe("nodes that are slow", () => {
  test("all of them: no lease is given out with less left than it must have, and it is given back", async ({ own }) => {
    const { running, locker } = await own(3, { nodeTimeoutMs: 5_000, ttlMs: 10_000 });
    await takeAndGiveBack(locker);
    for (const node of running.nodes) node.slow(80);
    const attempt = await locker.tryAcquire("r", { ttlMs: 120 });
    expect(attempt).toMatchObject({ ok: false, reason: "too_slow" });
    if (!attempt.ok) expect(attempt.message).toMatch(/it took so long that -?\d+ ms of the lease were left/);
    await nothingLeft(running);
    const error = await failure(locker.acquire("r", { ttlMs: 120, waitMs: 0 }));
    expect(error).toMatchObject({ code: "LOCK_TOO_SLOW" });
    await nothingLeft(running);
  });

  test("one of three, late for every caller: never two holders", async ({ fleet, open }) => {
    const running = await fleet({ nodes: 3 });
    const [a, b] = [open({ nodes: running.urls }), open({ nodes: running.urls })];
    await Promise.all([a.ready(), b.ready()]);
    running.nodes[0]?.slow(20);
    for (let i = 0; i < 20; i++) {
      const attempts = await Promise.all([a.tryAcquire("r"), b.tryAcquire("r")]);
      const won = attempts.filter(({ ok }) => ok);
      expect(won.length).toBeLessThanOrEqual(1);
      await Promise.all(won.map((attempt) => (attempt.ok ? attempt.lease.release() : undefined)));
    }
  });
});

describe("what arrives late", () => {
  test("a grant that was executed after its time-out is given back when the node speaks again", async ({ own }) => {
    const { running, locker } = await own(3, { nodeTimeoutMs: 60 });
    await takeAndGiveBack(locker);
    await Promise.all([running.nodes[0]?.pause(), running.nodes[1]?.pause()]);
    expect(await locker.tryAcquire("r", { ttlMs: 30_000 })).toMatchObject({ ok: false, reason: "no_quorum" });
    await Promise.all([running.nodes[0]?.resume(), running.nodes[1]?.resume()]);
    await nothingLeft(running);
    const lease = await locker.acquire("r");
    expect(lease.held).toBe(true);
  });

  test("a grant whose answer was lost is given back", async ({ own }) => {
    const { running, locker } = await own(3, { nodeTimeoutMs: 60 });
    await takeAndGiveBack(locker);
    for (const node of running.nodes) node.dropReplies();
    expect(await locker.tryAcquire("r", { ttlMs: 30_000 })).toMatchObject({ ok: false, reason: "no_quorum" });
    for (const node of running.nodes) await node.heal();
    await nothingLeft(running);
  });

  test("a connection that breaks under a grant does not plant it after the reconnect", async ({ own }) => {
    const { running, locker } = await own(3, { nodeTimeoutMs: 500 });
    await takeAndGiveBack(locker);
    await Promise.all(running.nodes.map((node) => node.partition()));
    expect(await locker.tryAcquire("r", { ttlMs: 30_000 })).toMatchObject({ ok: false, reason: "no_quorum" });
    // Lost, and not still on its way to the proxy, which would pass it on once healed.
    await Promise.all(running.nodes.map((node) => node.until(({ requests }) => requests.droppedBytes > 0)));
    for (const node of running.nodes) await node.heal();
    const lease = await locker.acquire("other");
    expect(lease.held).toBe(true);
    await nothingLeft(running);
    // Nor was it planted and given back.
    for (const node of running.nodes) expect(await node.cli("EXISTS", "{palisade}:token:r")).toBe(0);
  });
});

describe("a node that stands still for longer than a lease can last", () => {
  test("L2 executes the grant it had received when it goes on, and is then told of the release", async ({ own }) => {
    const KEY_LIVES_MS = 1_200;
    const { running, locker } = await own(3, { ttlMs: KEY_LIVES_MS, maxTtlMs: KEY_LIVES_MS, nodeTimeoutMs: 50 });
    const frozen = running.nodes[2];
    if (frozen === undefined) throw new Error("a fleet of three has a third node");
    await locker.ready();
    await takeAndGiveBack(locker);
    // A node that is stopped between a request and its answer finds the connection gone when it
    // goes on, and never reads the grant behind that request.
    const hasReleased = async (): Promise<boolean> =>
      (await frozen.cli("EXISTS", "{palisade}:token:warm-up")) === 1 && (await frozen.cli("GET", "{palisade}:lock:warm-up")) === null;
    await until(hasReleased, "n3 has executed the release");
    await frozen.cli("PING"); // Answered after it.
    const events: NodeEvent[] = [];
    const onEvent = (event: unknown): void => void events.push(event as NodeEvent);
    subscribe(channelNames.node, onEvent);
    await frozen.pause();
    const lease = await locker.acquire("r");
    await until(() => events.some((event) => event.kind === "disconnected" && event.node === "n3"), "n3 is given up");
    unsubscribe(channelNames.node, onEvent);
    await lease.release();
    // The time itself is the condition: every key that a node granted by now has run out.
    await new Promise((resolve) => setTimeout(resolve, KEY_LIVES_MS + 100));
    await frozen.resume();
    const expired = async (): Promise<string> => /expired_keys:\d+/.exec(String(await frozen.cli("INFO", "stats")))?.[0] ?? "";
    await until(async () => Number(await frozen.cli("EXISTS", "{palisade}:token:r")) === 1, "n3 has executed the grant");
    const before = await expired();
    await nothingLeft(running);
    expect(await expired()).toBe(before);
  });
});

describe("nodes that restart", () => {
  test("without their memory are not believed: the lease that they forgot is not granted a second time", async ({ fleet, open }) => {
    const running = await fleet({ nodes: 3 });
    const [a, b] = [open({ nodes: running.urls, ttlMs: 20_000 }), open({ nodes: running.urls })];
    await b.ready();
    const lease = await a.acquire("r");
    await until(async () => !(await fleetHolders(running, "r")).includes(null), "all nodes have it");
    await running.nodes[0]?.restart({ forget: true });
    await running.nodes[1]?.restart({ forget: true });
    const attempt = await b.tryAcquire("r");
    expect(attempt).toMatchObject({ ok: false, reason: "no_quorum" });
    lease.assertHeld();
  });
});
