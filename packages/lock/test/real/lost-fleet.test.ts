// One of several fleets is gone for good: how long its leases are outwaited before its resources
// have other holders, which the fleets that are left have to know without it.
import type { Lease, Locker } from "@palisade/lock";
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
