// Several fleets behind one locker: where a resource belongs, what becomes of it when the list of
// fleets changes, and what one fleet does while another is down.
import type { Lease, Locker } from "@palisade/lock";
import type { StartFleet } from "@palisade/testkit/vitest";
import { homeIn } from "../../src/protocol/routing.js";
import { LeaseHistory, unbroken } from "./lease-history.js";
import { describe, expect, type OpenLocker, test } from "./lock-test.js";

const ttlMs = 300;
const patient = { timeout: 90_000 };
const options = { ttlMs, maxTtlMs: ttlMs, waitMs: 10_000 };
const names = Array.from({ length: 30 }, (_, i) => `orders/${i}`);

/** Three nodes for each of these. */
async function serversOf<Name extends string>(fleet: StartFleet, ...of: readonly Name[]) {
  const { urls, nodes } = await fleet({ nodes: 3 * of.length });
  const shares = <Item>(items: readonly Item[]) =>
    Object.fromEntries(of.map((name, i) => [name, items.slice(3 * i, 3 * i + 3)])) as unknown as Record<Name, readonly Item[]>;
  return { fleets: shares(urls), servers: shares(nodes) };
}

/** Of these names, those that belong to this one of the fleets. */
function belongingTo(fleet: string, among: readonly string[]): readonly string[] {
  return names.filter(
    (name) =>
      homeIn(
        among.map((one) => ({ name: one })),
        name,
      )?.name === fleet,
  );
}

describe("fleets that are founded together", () => {
  test(
    "F1 serve each resource from one of them, the same for every locker, whatever the order they are given in",
    patient,
    async ({ fleet, open }) => {
      const { east, north, west } = (await serversOf(fleet, "east", "north", "west")).fleets;
      const one = open({ fleets: { west, north, east } });
      const other = open({ fleets: { east, west, north } });
      const leases = await Promise.all(names.map((name, i) => (i % 2 === 0 ? one : other).acquire(name)));
      const homes = await Promise.all(names.map(async (name) => (await other.inspect(name)).fleet));
      expect(new Set(homes)).toEqual(new Set(["east", "north", "west"]));
      const refused = await Promise.all(names.map((name) => other.tryAcquire(name)));
      expect(refused.map((answer) => answer.ok || answer.reason)).toEqual(names.map(() => "held"));
      expect((await one.fleets()).fleets).toMatchObject(["east", "north", "west"].map((name) => ({ name, state: "used", version: 1 })));
      expect((await one.listHeld()).held.map(({ resource }) => resource)).toEqual([...names].sort());
      await Promise.all(leases.map((lease) => lease.release()));
    },
  );
});

const moving = belongingTo("east", ["east", "west"]).slice(0, 3);
const staying = belongingTo("west", ["east", "west"]).slice(0, 3);

/** Two lockers with one fleet, which is all of the list, and two with another besides. */
async function oneOfTwo(fleet: StartFleet, open: OpenLocker) {
  const { fleets, servers } = await serversOf(fleet, "east", "west");
  const { east, west } = fleets;
  const old = [open({ fleets: { west }, ...options }), open({ fleets: { west }, ...options })] as const;
  await old[0].ready();
  await old[0].changeFleets({ name: "west" });
  const present = [open({ fleets: { east, west }, ...options }), open({ fleets: { east, west }, ...options })] as const;
  await Promise.all(present.map((locker) => locker.ready()));
  return { old, present, east, west, servers };
}

/** Until somebody else has it. */
async function heldNext(locker: Locker, resource: string, before: Lease): Promise<void> {
  const next = await locker.acquire(resource);
  expect(before.held).toBe(false);
  expect(next.token).toBeGreaterThan(before.token);
  await next.release();
}

describe("a fleet that is added", () => {
  test(
    "F1 T1 T2 L2 takes over what moves to it while leases are taken by those who know it and those who do not",
    patient,
    async ({ fleet, open }) => {
      const { old, present } = await oneOfTwo(fleet, open);
      const history = new LeaseHistory();
      let isOver = false;
      const working = history.all([...old, ...present], () => isOver, [...moving, ...staying]);
      await expect.poll(() => history.leases, patient).toBeGreaterThan(50);
      expect((await present[0].changeFleets({ add: "east" }))?.version).toBe(2);
      const then = history.leases;
      await expect.poll(() => history.leases, patient).toBeGreaterThan(then + 50);
      isOver = true;
      await working;
      expect(history.broken).toEqual(unbroken);
      const homes = await Promise.all(moving.map(async (name) => (await present[1].inspect(name)).fleet));
      expect(homes).toEqual(moving.map(() => "east"));
      // Who was not given the new fleet is told which one, and holds nothing.
      await expect(old[0].acquire(moving[0] ?? "")).rejects.toMatchObject({
        code: "FLEET_MISMATCH",
        message: expect.stringMatching(/version 2 of the fleets is east, west, and this process was not given east; add it to its fleets/),
      });
    },
  );

  test(
    "L2 control: lockers that choose a fleet by themselves hold what moves twice, and its tokens fall",
    patient,
    async ({ fleet, open }) => {
      const { west, east } = (await serversOf(fleet, "east", "west")).fleets;
      const history = new LeaseHistory();
      const [inWest, inEast] = [open({ nodes: west, ...options }), open({ nodes: east, ...options })];
      await Promise.all([inWest.ready(), inEast.ready()]);
      let isOver = false;
      const working = history.all([inWest, inEast], () => isOver, moving);
      await expect.poll(() => Math.min(history.overlaps, history.sunk), patient).toBeGreaterThan(0);
      isOver = true;
      await working;
    },
  );

  test("L2 T1 lets a lease that is held and renewed come to its end before it has another holder", patient, async ({ fleet, open }) => {
    const { present } = await oneOfTwo(fleet, open);
    const [resource = ""] = moving;
    const held = await present[1].acquire(resource, { renew: true });
    const next = present[0].changeFleets({ add: "east" }).then(() => heldNext(present[1], resource, held));
    await next;
    expect((await held.release()).outcome).toBe("free");
  });

  test(
    "F1 is used by nobody where the change stopped half-way, until another finishes it or takes it back",
    patient,
    async ({ fleet, open }) => {
      const { present } = await oneOfTwo(fleet, open);
      const [mover = ""] = moving;
      const [stayer = ""] = staying;
      const first = await present[0].acquire(mover);
      await first.release();
      // Stopped while leases are outwaited, when every other fleet has the list.
      const stopped = async () => {
        await expect(present[0].changeFleets({ add: "east" }, { waitMs: 250 })).rejects.toMatchObject({ code: "LOCK_NO_QUORUM" });
        return (await present[1].fleets()).fleets;
      };
      await expect.poll(stopped, { timeout: 20_000 }).toMatchObject([
        { name: "east", state: "changing", version: 1 },
        { name: "west", state: "used", version: 2 },
      ]);
      expect(await present[1].tryAcquire(mover)).toMatchObject({
        ok: false,
        reason: "no_quorum",
        message: expect.stringMatching(/belongs to fleet west by version 1 of the list, which east has/),
      });
      await (await present[1].acquire(stayer)).release();
      expect(await present[1].changeFleets({ remove: "east" })).toMatchObject({ version: 3 });
      expect((await present[0].inspect(mover)).fleet).toBe("west");
      const again = await present[0].acquire(mover);
      expect(again.token).toBeGreaterThan(first.token);
      await again.release();
      expect(await present[0].changeFleets({ add: "east" })).toMatchObject({ version: 4 });
      expect((await present[1].inspect(mover)).fleet).toBe("east");
    },
  );
});

describe("a fleet that is taken away", () => {
  async function two(fleet: StartFleet, open: OpenLocker) {
    const { fleets, servers } = await serversOf(fleet, "east", "west");
    const { east, west } = fleets;
    const lockers = [open({ fleets: { east, west }, ...options }), open({ fleets: { east, west }, ...options })] as const;
    await Promise.all(lockers.map((locker) => locker.ready()));
    return { lockers, servers: [...servers.east] };
  }

  test("F1 T1 T2 L2 leaves its resources to the others while leases are taken", patient, async ({ fleet, open }) => {
    const { lockers } = await two(fleet, open);
    const history = new LeaseHistory();
    let isOver = false;
    const working = history.all(lockers, () => isOver, [...moving, ...staying]);
    await expect.poll(() => history.leases, patient).toBeGreaterThan(50);
    await lockers[0].changeFleets({ remove: "east" });
    const then = history.leases;
    await expect.poll(() => history.leases, patient).toBeGreaterThan(then + 50);
    isOver = true;
    await working;
    expect(history.broken).toEqual(unbroken);
    expect((await lockers[1].fleets()).fleets).toMatchObject([{ state: "unused" }, { state: "used" }]);
  });

  test(
    "F1 T1 by the operator's word is lost: its resources go on above the clock's floor when its leases are over",
    patient,
    async ({ fleet, open }) => {
      const { lockers, servers } = await two(fleet, open);
      const [resource = ""] = moving;
      const held = await lockers[0].acquire(resource, { renew: true });
      await expect(lockers[0].changeFleets({ remove: "east", lost: true })).rejects.toThrow(/^east answers, so it is not lost/);
      await Promise.all(servers.map((node) => node.kill()));
      await expect(lockers[0].changeFleets({ remove: "east" }, { waitMs: 0 })).rejects.toMatchObject({
        code: "LOCK_NO_QUORUM",
        message: expect.stringMatching(/too few nodes of east answer/),
      });
      await lockers[0].changeFleets({ remove: "east", lost: true });
      await heldNext(lockers[1], resource, held);
    },
  );
});

describe("a fleet that is wholly down", () => {
  test(
    "W1 takes only its own resources with it, for lockers that know it and for one that starts then",
    patient,
    async ({ fleet, open }) => {
      const { fleets, servers } = await serversOf(fleet, "east", "west");
      const { east, west } = fleets;
      const usual = { fleets: { east, west }, waitMs: 1_000, connectTimeoutMs: 500 };
      const locker = open(usual);
      await locker.ready();
      await Promise.all(servers.east.map((node) => node.kill()));
      const late = open(usual);
      for (const each of [locker, late]) {
        const lease = await each.acquire(staying[0] ?? "");
        expect((await each.listHeld()).held).toMatchObject([{ resource: staying[0], fleet: "west" }]);
        expect((await each.listHeld()).silent).toEqual(["east/n1", "east/n2", "east/n3"]);
        await lease.release();
        await expect(each.acquire(moving[0] ?? "", { waitMs: 0 })).rejects.toMatchObject({
          code: "LOCK_NO_QUORUM",
          message: expect.stringMatching(/east\/n1 \(.*(ECONNREFUSED|ECONNRESET|EPIPE|connection lost)/),
        });
      }
      expect((await late.fleets()).fleets).toMatchObject([
        { name: "east", state: "silent" },
        { name: "west", state: "used" },
      ]);
    },
  );
});

test(
  "T1 G7 the highest token of any resource is that of any fleet, and every later lease is above it",
  patient,
  async ({ fleet, open }) => {
    const { east, west } = (await serversOf(fleet, "east", "west")).fleets;
    const locker = open({ fleets: { east, west } });
    const lease = await locker.acquire(moving[0] ?? "");
    const highest = await locker.highestToken(undefined, lease.token + 5_000);
    expect(highest).toBeGreaterThanOrEqual(lease.token + 5_000);
    for (const name of [moving[1] ?? "", staying[0] ?? ""]) expect((await locker.acquire(name)).token).toBeGreaterThan(highest);
  },
);

test(
  "T1 G7 the tokens of a fleet that is being taken away count until the others are above them, as do its leases",
  patient,
  async ({ fleet, open }) => {
    const { east, west } = (await serversOf(fleet, "east", "west")).fleets;
    const [resource = ""] = moving;
    const usual = { ...options, fleets: { east, west }, ttlMs: 3_000, maxTtlMs: 3_000 };
    const locker = open(usual);
    await locker.highestToken(resource, (await locker.acquire(staying[0] ?? "")).token + 50_000);
    const held = await locker.acquire(resource);
    const changer = open(usual);
    const change = changer.changeFleets({ remove: "east" });
    await expect.poll(async () => (await locker.fleets()).fleets, patient).toMatchObject([{ version: 2 }, { version: 1 }]);
    await Promise.all([changer.close(), expect(change).rejects.toMatchObject({ code: "LOCK_ABORTED" })]);
    for (const each of [locker, open(usual)]) {
      expect(await each.highestToken()).toBeGreaterThanOrEqual(held.token);
      expect((await each.listHeld({ prefix: resource })).held).toMatchObject([{ resource, fleet: "east" }]);
      expect(await each.listResources()).toContain(resource);
    }
    await locker.changeFleets({ remove: "east" });
    expect((await locker.fleets()).fleets).toMatchObject([{ state: "unused" }, { state: "used" }]);
  },
);

test("T1 G7 no fleet is left out where the first to answer has an older list", patient, async ({ fleet, open }) => {
  const { fleets, servers } = await serversOf(fleet, "east", "north", "west");
  const { west } = fleets;
  const one = open({ fleets: { west }, ...options });
  await one.ready();
  await one.changeFleets({ name: "west" });
  const all = open({ fleets, ...options });
  // North has the list of then, and hears of no later one.
  for (const change of [{ add: "north" }, { remove: "north" }]) await all.changeFleets(change);
  await all.changeFleets({ add: "east" });
  const highest = await all.highestToken(moving[0], (await all.acquire(staying[0] ?? "")).token + 50_000);
  await Promise.all([...servers.east, ...servers.west].map((node) => node.pause()));
  const late = open({ ...options, fleets, nodeTimeoutMs: 300 });
  const asked = late.highestToken();
  await expect.poll(async () => (await late.fleets()).fleets[1], patient).toMatchObject({ name: "north", version: 3 });
  await Promise.all([...servers.east, ...servers.west].map((node) => node.resume()));
  expect(await asked).toBeGreaterThanOrEqual(highest);
});

describe("several resources of one lease", () => {
  test(
    "F1 have the same part in braces, or are refused before anything is sent, with a message that says how",
    patient,
    async ({ fleet, open }) => {
      const nowhere = open({ fleets: { east: ["redis://127.0.0.1:1"], west: ["redis://127.0.0.1:2"] } });
      const told =
        /^"from" and "to" may belong to different fleets, and a lease lives in one: give all resources .* braces, such as "\{from\}"/;
      await expect(nowhere.acquire(["from", "to"])).rejects.toThrow(told);
      await expect(nowhere.tryAcquire(["from", "to"])).rejects.toThrow(RangeError);
      await expect(nowhere.using(["from", "to"], () => undefined)).rejects.toThrow(RangeError);
      const { east, west } = (await serversOf(fleet, "east", "west")).fleets;
      const locker = open({ fleets: { east, west } });
      const lease = await locker.acquire(["{7}/from", "{7}/to"]);
      const homes = await Promise.all(lease.resources.map(async (resource) => (await locker.inspect(resource)).fleet));
      expect(new Set(homes).size).toBe(1);
    },
  );
});

describe("what an operator can get wrong", () => {
  test("F1 L2 a process that was given one of the fleets as its nodes is refused, and told of all", patient, async ({ fleet, open }) => {
    const { east, west } = (await serversOf(fleet, "east", "west")).fleets;
    await open({ fleets: { east, west } }).ready();
    await expect(open({ nodes: west }).acquire("a")).rejects.toMatchObject({
      code: "FLEET_MISMATCH",
      message: expect.stringMatching(
        /one of several fleets: version 1 of the fleets is east, west; give this process all of them, by name/,
      ),
    });
  });

  test("F1 L2 names that were exchanged, or lead to other nodes, are refused", patient, async ({ fleet, open }) => {
    const { east, north, west } = (await serversOf(fleet, "east", "north", "west")).fleets;
    const locker = open({ fleets: { east, west } });
    const lease = await locker.acquire(moving[0] ?? "");
    await expect(open({ fleets: { west: east, east: west } }).acquire("a")).rejects.toMatchObject({
      code: "FLEET_MISMATCH",
      message: expect.stringMatching(/configured here as \w+ are \w+; correct the names/),
    });
    for (const resource of [moving[0] ?? "", staying[0] ?? ""]) {
      const answer = await open({ fleets: { east: north, west }, waitMs: 200 }).tryAcquire(resource);
      expect(answer.ok).toBe(resource === staying[0]);
    }
    expect(lease.held).toBe(true);
  });

  test(
    "F1 fleets that were founded with different addresses are not used: both lists are told, and a command that uses them",
    patient,
    async ({ fleet, open }) => {
      const servers = await fleet({ nodes: 6 });
      const [inside, outside] = [servers.urls, (await servers.anotherWay()).urls];
      const nowhere = [1, 2, 3].map((port) => `redis://127.0.0.1:${port}`);
      const first = open({ fleets: { east: inside.slice(0, 3), west: nowhere }, ...options });
      await expect.poll(async () => (await first.fleets()).fleets[0], patient).toMatchObject({ name: "east", version: 0 });
      const second = open({ fleets: { east: outside.slice(0, 3), west: outside.slice(3) }, ...options });
      const addressOf = (url = ""): string => new URL(url).host;
      const told = `east by one to which its nodes are .*${addressOf(inside[0])}.*; west by one to which its nodes are .*${addressOf(outside[3])}.*; here they are east=${addressOf(outside[0])}.*palisade fleets name east`;
      await expect(second.acquire("a")).rejects.toThrow(new RegExp(told));
      for (const change of [{ name: "east" }, { add: "west" }]) await second.changeFleets(change);
      for (const name of [moving[0] ?? "", staying[0] ?? ""]) await (await second.acquire(name)).release();
      expect((await second.inspect(staying[0] ?? "")).fleet).toBe("west");
    },
  );

  test("F1 a second fleet beside one that is used by itself is refused, until the first has its name", patient, async ({ fleet, open }) => {
    const { east, west } = (await serversOf(fleet, "east", "west")).fleets;
    const alone = open({ nodes: west });
    await alone.ready();
    const both = open({ fleets: { east, west } });
    await expect(both.acquire("a")).rejects.toMatchObject({
      code: "FLEET_MISMATCH",
      message: expect.stringMatching(/palisade fleets name west/),
    });
    await both.changeFleets({ name: "west" });
    for (const locker of [alone, both]) await (await locker.acquire("a")).release();
    expect((await both.inspect("a")).fleet).toBe("west");
  });

  test("F1 a fleet that has been used by itself is not added", patient, async ({ fleet, open }) => {
    const { east, west } = (await serversOf(fleet, "east", "west")).fleets;
    await (await open({ nodes: east, ...options }).acquire("a")).release();
    await open({ nodes: west, ...options }).ready();
    const locker = open({ fleets: { east, west }, ...options });
    await locker.changeFleets({ name: "west" });
    await expect(locker.changeFleets({ add: "east" })).rejects.toThrow(
      /^east has been used by itself: it has tokens of 1 resources, a for one/,
    );
    expect((await locker.fleets()).fleets).toMatchObject([
      { name: "east", state: "unused" },
      { name: "west", state: "used" },
    ]);
  });
});
