// The list of fleets as the nodes of one fleet store it and agree on it, beside their members.
import { createLocker } from "@palisade/lock";
import { describe, expect, type StartFleet, test } from "@palisade/testkit/vitest";
import { onTestFinished } from "vitest";
import { sourceAt } from "../../../src/options/node-source.js";
import type { FleetList } from "../../../src/protocol/fleet-list.js";
import { homeIn } from "../../../src/protocol/routing.js";
import { generationOf, readRoster, writeRoster } from "../../../src/redis/roster.js";
import { opened } from "./opened-fleet.js";

const namespace = "palisade";
const maxTtlMs = 200;

const among = { name: "west", names: ["west"], key: "" };

async function founded(fleet: StartFleet) {
  const { nodes, urls } = await fleet({ nodes: 3 });
  const { fleet: west } = await opened(urls, { namespace, maxTtlMs, among });
  const { id = "" } = west.listing;
  const list = (version: number, ...others: readonly string[]): FleetList => ({
    version,
    fleets: [{ name: "west", id }, ...others.map((name) => ({ name, id: `id-${name}` }))],
  });
  return { nodes, urls, west, list };
}

describe("the list of fleets", () => {
  test("F1 is taken only in the place of the one for which that was planned", async ({ fleet }) => {
    const { west, list } = await founded(fleet);
    const [first, second, late] = [list(1), list(2), list(3)];
    await west.listing.change({ from: undefined, to: first }, { waitMs: 30_000 });
    expect(west.listing.list).toEqual(first);
    await west.listing.change({ from: first, to: second }, { waitMs: 30_000 });
    await west.listing.change({ from: first, to: late }, { waitMs: 30_000 });
    expect(west.listing.list).toEqual(second);
    expect((await west.listing.standing())?.list).toEqual(second);
  });

  test("F1 L2 lets a longest lease be changed only while it is the one whose fleets were told", async ({ fleet }) => {
    const { west, list } = await founded(fleet);
    const [first, second] = [list(1), list(2, "east")];
    await west.listing.change({ from: undefined, to: first }, { waitMs: 30_000 });
    await west.listing.change({ from: first, maxTtlMs: 400 }, { waitMs: 30_000 });
    expect(west.members()?.maxTtlMs).toBe(400);
    await west.listing.change({ from: first, to: second }, { waitMs: 30_000 });
    await west.listing.change({ from: first, maxTtlMs: 800 }, { waitMs: 30_000 });
    expect(west.members()?.maxTtlMs).toBe(400);
    await expect(west.reconfigure({ maxTtlMs: 800 }, { waitMs: 30_000 })).rejects.toMatchObject({ code: "FLEET_MISMATCH" });
  });

  test("F1 is not overwritten by a changer whose step was planned while another one took it", async ({ fleet }) => {
    const { west, urls, list } = await founded(fleet);
    const { fleet: other } = await opened(urls, { namespace, maxTtlMs, among });
    const [first, mine, yours] = [list(1), list(2), { ...list(2), removed: "east" }];
    await west.listing.change({ from: undefined, to: first }, { waitMs: 30_000 });
    await other.listing.lookAgain();
    const both = [
      west.listing.change({ from: first, to: mine }, { waitMs: 30_000 }),
      other.listing.change({ from: first, to: yours }, { waitMs: 30_000 }),
    ];
    await Promise.all(both);
    await Promise.all([west, other].map(({ listing }) => listing.lookAgain()));
    expect(west.listing.list).toEqual(other.listing.list);
    expect(west.members()?.generation).toBe(3);
  });

  test("F1 stands among the members for versions that know no list, as one to which no way leads", async ({ fleet }) => {
    const { nodes, west, list } = await founded(fleet);
    await west.listing.change({ from: undefined, to: list(1, "east") }, { waitMs: 30_000 });
    const stored = String(await nodes[0]?.cli("HGET", `{${namespace}}:node`, "members"));
    const { members } = JSON.parse(stored) as { members: readonly { readonly id: string; readonly address: string }[] };
    expect(members).toHaveLength(4);
    const stranger = members.at(-1);
    expect(stranger?.address).toBe("(one of the fleets west east: upgrade this process)");
    expect(sourceAt(stranger?.address ?? "", "redis://127.0.0.1:6379")).toBeUndefined();
    // The word that votes carry is the same for both, whoever opens the generation.
    const roster = readRoster(stored);
    expect(roster?.members).toHaveLength(3);
    const { fleets: _, ...withoutList } = JSON.parse(stored);
    if (roster === undefined) throw new Error("the nodes store a roster");
    expect(generationOf(withoutList)).toBe(generationOf(roster));
    expect(writeRoster(roster)).toBe(stored);
  });
});

test("T1 G7 a fleet that is added knows the tokens and marks of the others, also those that it had before itself", {
  timeout: 60_000,
}, async ({ fleet }) => {
  const { urls } = await fleet({ nodes: 6 });
  const fleets = { east: urls.slice(0, 3), west: urls.slice(3) };
  const locker = createLocker({ fleets, ttlMs: maxTtlMs, maxTtlMs, nodeTimeoutMs: maxTtlMs, connectTimeoutMs: 10_000 });
  onTestFinished(() => locker.close());
  const names = Array.from({ length: 100 }, (_, i) => `r${i}`);
  const [resource = ""] = names.filter((name) => homeIn([{ name: "east" }, { name: "west" }], name)?.name === "east");
  const first = await locker.acquire(resource);
  await first.release();
  await Promise.all(names.slice(0, 20).map((name) => locker.mark(name, 7)));
  await locker.changeFleets({ remove: "east" });
  let last = await locker.acquire(resource);
  await last.release();
  expect(last.token).toBeGreaterThan(first.token);
  // East has a counter of its own for it, which is low by now.
  for (let i = 0; i < 20; i++) {
    last = await locker.acquire(resource);
    await last.release();
  }
  await locker.changeFleets({ add: "east" });
  const again = await locker.acquire(resource);
  expect((await locker.inspect(resource)).fleet).toBe("east");
  expect(again.token).toBeGreaterThan(last.token);
  expect(await Promise.all(names.slice(0, 20).map((name) => locker.mark(name, 0)))).toEqual(names.slice(0, 20).map(() => 7));
});
