// One of several fleets is gone for good: how long its leases are outwaited before its resources
// have other holders, which the fleets that are left have to know without it.
import type { ChangeWaiting, Lease, Locker } from "@palisade/lock";
import type { RedisNode } from "@palisade/testkit";
import type { StartFleet } from "@palisade/testkit/vitest";
import { homeIn } from "../../src/protocol/routing.js";
import { describe, expect, type OpenLocker, test } from "./lock-test.js";

const shortMs = 300;
/** The others allow shorter ones by far. */
const longMs = 5_000;
const patient = { timeout: 90_000 };
const founding = { ttlMs: shortMs, maxTtlMs: shortMs };
const usual = { ttlMs: shortMs, waitMs: 30_000 };
const [moving = ""] = Array.from({ length: 30 }, (_, i) => `orders/${i}`).filter(
  (name) => homeIn([{ name: "east" }, { name: "west" }], name)?.name === "east",
);

async function serversOf(fleet: StartFleet) {
  const { urls, nodes } = await fleet({ nodes: 6 });
  return {
    fleets: { east: urls.slice(0, 3), west: urls.slice(3) },
    servers: { east: nodes.slice(0, 3), west: nodes.slice(3) },
  };
}

/** Two fleets, of which one was allowed longer leases when both were used. */
async function lengthened(fleet: StartFleet, open: OpenLocker) {
  const { fleets, servers } = await serversOf(fleet);
  const founder = open({ fleets, ...founding });
  await founder.ready();
  expect(await founder.reconfigure({ maxTtlMs: longMs }, { fleet: "east" })).toMatchObject({ maxTtlMs: longMs });
  const locker = open({ fleets, ...usual });
  await locker.ready();
  return { locker, servers };
}

/** By now the lease before it is over. */
async function heldNext(locker: Locker, before: Lease): Promise<void> {
  const next = await locker.acquire(moving);
  expect(before.held).toBe(false);
  expect(next.token).toBeGreaterThan(before.token);
  await next.release();
}

const kill = (servers: readonly RedisNode[]): Promise<unknown> => Promise.all(servers.map((node) => node.kill()));

/** As if the list had been made by a version that tells nobody how long leases may last. */
async function untold(servers: readonly RedisNode[]): Promise<void> {
  for (const node of servers) expect(await node.cli("DEL", "{palisade}:marks")).toBe(1);
}

describe("a fleet that is lost", () => {
  test("L2 F1 is outwaited for its own longest lease, which those that are left have been told", patient, async ({ fleet, open }) => {
    const { locker, servers } = await lengthened(fleet, open);
    const held = await locker.acquire(moving, { ttlMs: longMs });
    await kill(servers.east);
    await locker.changeFleets({ remove: "east", lost: true });
    await heldNext(locker, held);
  });

  test("L2 F1 that came with longer leases is outwaited for these", patient, async ({ fleet, open }) => {
    const { fleets, servers } = await serversOf(fleet);
    await open({ nodes: fleets.east, ...founding, maxTtlMs: longMs }).ready();
    await open({ nodes: fleets.west, ...founding }).ready();
    const locker = open({ fleets, ...usual });
    for (const change of [{ name: "west" }, { add: "east" }]) await locker.changeFleets(change);
    const held = await locker.acquire(moving, { ttlMs: longMs });
    await kill(servers.east);
    await locker.changeFleets({ remove: "east", lost: true });
    await heldNext(locker, held);
  });

  test(
    "L2 F1 whose leases an older version told nobody of is taken away with a word of the operator, and not without",
    patient,
    async ({ fleet, open }) => {
      const { locker, servers } = await lengthened(fleet, open);
      const held = await locker.acquire(moving, { ttlMs: longMs });
      await untold(servers.west);
      await kill(servers.east);
      await expect(locker.changeFleets({ remove: "east", lost: true })).rejects.toThrow(
        /^how long leases of east may last is not known to the others.*lost: \{ maxTtlMs \}, or --max-ttl/,
      );
      await locker.changeFleets({ remove: "east", lost: { maxTtlMs: longMs } });
      await heldNext(locker, held);
    },
  );
});

/** Which of three fleets has it. */
const inNorth = Array.from({ length: 30 }, (_, i) => `orders/${i}`).find(
  (name) => homeIn([{ name: "east" }, { name: "north" }, { name: "west" }], name)?.name === "north",
);

async function three(fleet: StartFleet) {
  const { urls, nodes } = await fleet({ nodes: 9 });
  const [east, north, west] = [urls.slice(0, 3), urls.slice(3, 6), urls.slice(6)];
  return { fleets: { east, north, west }, servers: { east: nodes.slice(0, 3), north: nodes.slice(3, 6) } };
}

test(
  "L2 F1 two fleets that are lost at once are taken away by one call, each outwaited for its own longest lease",
  patient,
  async ({ fleet, open }) => {
    const { fleets, servers } = await three(fleet);
    const founder = open({ fleets, ...founding });
    await founder.ready();
    await founder.reconfigure({ maxTtlMs: longMs }, { fleet: "north" });
    const locker = open({ fleets, ...usual });
    const held = await locker.acquire(inNorth ?? "", { ttlMs: longMs });
    await kill([...servers.east, ...servers.north]);
    await expect(locker.changeFleets({ remove: "east", lost: true }, { waitMs: 500 })).rejects.toThrow(
      /too few nodes of north answer; what is lost besides east has to be named with it/,
    );
    await expect(locker.changeFleets({ remove: ["east", "north"] })).rejects.toThrow(TypeError);
    await locker.changeFleets({ remove: ["east", "north"], lost: true });
    const next = await locker.acquire(inNorth ?? "");
    expect(held.held).toBe(false);
    expect(next.token).toBeGreaterThan(held.token);
    for (const name of [moving, "orders/x"]) await (await locker.acquire(name)).release();
    expect((await locker.fleets()).fleets).toMatchObject([
      { state: "silent" },
      { state: "silent" },
      { name: "west", state: "used", version: 3 },
    ]);
  },
);

test(
  "F1 L2 a fleet that is lost while another one is added is taken away, and the other one is there",
  patient,
  async ({ fleet, open }) => {
    const { fleets, servers } = await three(fleet);
    const { east, north, west } = fleets;
    await open({ fleets: { east, west }, ...founding }).ready();
    const locker = open({ fleets: { east, north, west }, ...usual, maxTtlMs: shortMs });
    const stopped = async () => {
      await expect(locker.changeFleets({ add: "north" }, { waitMs: 250 })).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
      return (await locker.fleets()).fleets;
    };
    await expect
      .poll(stopped, { timeout: 20_000 })
      .toMatchObject([{ version: 2 }, { name: "north", state: "changing", version: 1 }, { version: 2 }]);
    const held = await locker.acquire(moving);
    await kill(servers.east);
    await locker.changeFleets({ remove: "east", lost: true });
    expect((await locker.fleets()).fleets).toMatchObject([
      { state: "silent" },
      { state: "used", version: 3 },
      { state: "used", version: 3 },
    ]);
    await heldNext(locker, held);
    await (await locker.acquire(inNorth ?? "")).release();
  },
);

/** Until so many lockers are connected to each of these, without being asked for anything. */
async function connectedBy(lockers: number, servers: readonly RedisNode[]): Promise<void> {
  const connections = async (node: RedisNode): Promise<number> =>
    String(await node.cli("CLIENT", "LIST")).split("name=palisade:").length - 1;
  await expect
    .poll(async () => Math.min(...(await Promise.all(servers.map(connections)))), { timeout: 30_000 })
    .toBeGreaterThanOrEqual(lockers);
}

test(
  "L2 F1 a fleet that comes back after it was removed as lost serves nobody who reaches the others, be it a locker that slept or a new one",
  patient,
  async ({ fleet, open }) => {
    const { fleets, servers } = await serversOf(fleet);
    // Long enough to be renewed, also where the machine is busy.
    const renewable = { fleets, ttlMs: 3_000, maxTtlMs: 3_000, waitMs: 30_000 };
    const slept = open(renewable);
    await (await slept.acquire(moving)).release();
    const operator = open(renewable);
    await operator.ready();
    await kill(servers.east);
    await operator.changeFleets({ remove: "east", lost: true });
    const held = await operator.acquire(moving, { renew: true });
    await Promise.all(servers.east.map((node) => node.restart()));
    await connectedBy(2, servers.east);
    for (const locker of [slept, open(renewable)])
      expect(await locker.tryAcquire(moving), locker === slept ? "slept" : "new").toMatchObject({ ok: false, reason: "held" });
    expect(held.held).toBe(true);
    await held.release();
  },
);

test(
  "L2 F1 a fleet that was removed as lost and comes back node by node serves nobody who looked at the lists in between",
  patient,
  async ({ fleet, open }) => {
    const { fleets, servers } = await serversOf(fleet);
    const renewable = { fleets, ttlMs: 3_000, maxTtlMs: 3_000, waitMs: 30_000 };
    const slept = open(renewable);
    await (await slept.acquire(moving)).release();
    const operator = open(renewable);
    await operator.ready();
    await kill(servers.east);
    await servers.east[0]?.restart();
    await connectedBy(2, servers.east.slice(0, 1));
    await expect(slept.acquire(moving, { waitMs: 0 })).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
    await operator.changeFleets({ remove: "east", lost: true });
    const held = await operator.acquire(moving, { renew: true });
    // Two of three are enough to grant a lease.
    await servers.east[1]?.restart();
    await slept.ready();
    expect(await slept.tryAcquire(moving)).toMatchObject({ ok: false, reason: "held" });
    expect(held.held).toBe(true);
    await held.release();
  },
);

test("F1 a change of the list waits for the longest lease that is allowed, and says so", patient, async ({ fleet, open }) => {
  const { fleets } = await serversOf(fleet);
  const allowedMs = 200_000;
  const operator = open({ fleets, ttlMs: shortMs, maxTtlMs: allowedMs });
  await operator.ready();
  const heard: ChangeWaiting[] = [];
  const change = operator.changeFleets({ remove: "east" }, { onWait: (waiting) => heard.push(waiting) });
  const ended = expect(change).rejects.toMatchObject({ code: "LOCK_ABORTED" });
  await expect.poll(() => heard.at(-1)?.waitMs ?? 0, { timeout: 20_000 }).toBeGreaterThan(allowedMs);
  expect(heard.at(-1)?.why).toMatch(/^leases .* may run$/);
  await operator.close();
  await ended;
});

test("L2 F1 the longest lease of a fleet grows only when the others know of it", patient, async ({ fleet, open }) => {
  const { fleets, servers } = await serversOf(fleet);
  const locker = open({ fleets, ...founding, waitMs: 1_000 });
  await locker.ready();
  await kill(servers.west);
  await expect(locker.reconfigure({ maxTtlMs: longMs }, { fleet: "east" })).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
  const late = open({ fleets, ttlMs: shortMs, waitMs: 5_000, connectTimeoutMs: 500 });
  await expect(late.acquire(moving, { ttlMs: longMs })).rejects.toThrow(RangeError);
  await (await late.acquire(moving)).release();
});

test(
  "F1 doctor names the fleet of which the others have not been told, until it is told by a change that is done",
  patient,
  async ({ fleet, open }) => {
    const { locker, servers } = await lengthened(fleet, open);
    const found = async () => (await locker.doctor()).filter(({ code }) => code === "fleets");
    expect(await found()).toEqual([]);
    await untold(servers.west);
    expect(await found()).toMatchObject([
      { severity: "warning", node: "fleet east", message: expect.stringMatching(/5000 ms.*did not tell west/) },
    ]);
    await locker.changeFleets({ add: "east" });
    expect(await found()).toEqual([]);
  },
);
