// A gateway whose lock has several fleets: each token is verified with the fleet that its resource
// belongs to.
import { createLocker, type Locker } from "@palisade/lock";
import type { RedisNode } from "@palisade/testkit";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { type Answer, put } from "../support/wire.js";

const ttlMs = 1_000;
const patient = { timeout: 60_000 };

/** The nodes may be asked for the first time: it takes them a moment to be ready. */
async function decided(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.json?.code !== "verification_unavailable") return answer;
  }
}

async function nameIn(locker: Locker, fleet: string): Promise<string> {
  for (;;) {
    const name = uniqueName();
    if ((await locker.inspect(name)).fleet === fleet) return name;
  }
}

describe("tokens of several fleets", () => {
  test(
    "G4 are verified with the fleet of their resource; while one is down, those of the others are",
    patient,
    async ({ startGateway, fleet, redis: _redis }) => {
      const { nodes, urls } = await fleet({ nodes: 6 });
      const redisUrls = urls.map((url, i) => `${i < 3 ? "east" : "west"}=${url}`);
      const { url } = await startGateway({ redisUrls });
      await using locker = createLocker({ fleets: { east: urls.slice(0, 3), west: urls.slice(3) } });
      await locker.ready();
      const [inEast, inWest] = [await nameIn(locker, "east"), await nameIn(locker, "west")];
      for (const name of [inEast, inWest]) {
        await using lease = await locker.acquire(name);
        expect(await decided(() => put(url, name, { token: lease.token, value: {} }))).toMatchObject({ status: 201 });
        const forged = await decided(() => put(url, name, { token: lease.token + 1_000_000, value: {} }));
        expect(forged).toMatchObject({ status: 403, json: { code: "fencing_token_unissued" } });
      }
      const held = await locker.acquire(inEast);
      await Promise.all(nodes.slice(0, 3).map((node) => node.kill()));
      const next = await locker.acquire(inWest);
      expect(await decided(() => put(url, inWest, { token: next.token, value: {} }))).toMatchObject({ status: 200 });
      expect(await put(url, inEast, { token: held.token, value: {} })).toMatchObject({
        status: 503,
        json: { code: "verification_unavailable", outcome: "not_applied" },
      });
    },
  );

  test(
    "G1 G4 go on where a resource has moved: the next holder's is accepted, and that of the one before is stale",
    patient,
    async ({ startGateway, fleet, redis: _redis }) => {
      const { urls } = await fleet({ nodes: 6 });
      const fleets = { east: urls.slice(0, 3), west: urls.slice(3) };
      // The first to come decides how long a lease may last, and so how long one is outwaited.
      await using locker = createLocker({ fleets, ttlMs, maxTtlMs: ttlMs, nodeTimeoutMs: ttlMs });
      await locker.ready();
      const { url } = await startGateway({ redisUrls: urls.map((each, i) => `${i < 3 ? "east" : "west"}=${each}`) });
      const name = await nameIn(locker, "east");
      const before = await locker.acquire(name);
      expect(await decided(() => put(url, name, { token: before.token, value: { n: 1 } }))).toMatchObject({ status: 201 });
      await before.release();
      await locker.changeFleets({ remove: "east" });
      const after = await locker.acquire(name, { renew: true });
      expect(await decided(() => put(url, name, { token: after.token, value: { n: 2 } }))).toMatchObject({ status: 200 });
      expect(await put(url, name, { token: before.token, value: { n: 3 } })).toMatchObject({
        status: 412,
        json: { code: "fencing_token_stale" },
      });
      await after.release();
    },
  );
});

test(
  "G7 a gateway that starts without the fleet that keeps the database's beat names it, reads, and writes when it is back",
  patient,
  async ({ startGateway, fleet, redis: _redis }) => {
    const { nodes, urls } = await fleet({ nodes: 6 });
    const redisUrls = urls.map((url, i) => `${i < 3 ? "east" : "west"}=${url}`);
    const first = await startGateway({ redisUrls });
    const servers = { east: nodes.slice(0, 3), west: nodes.slice(3) };
    await using locker = createLocker({ fleets: { east: urls.slice(0, 3), west: urls.slice(3) } });
    await locker.ready();
    const names = { east: await nameIn(locker, "east"), west: await nameIn(locker, "west") };
    const leases = { east: await locker.acquire(names.east), west: await locker.acquire(names.west) };
    for (const at of ["east", "west"] as const)
      expect(await decided(() => put(first.url, names[at], { token: leases[at].token, value: {} }))).toMatchObject({ status: 201 });
    const keeper = await keeperOfBeat(servers);
    const other = keeper === "east" ? "west" : "east";
    await Promise.all(servers[keeper].map((node) => node.kill()));
    // It has asked before, so that it goes on.
    expect(await put(first.url, names[other], { token: leases[other].token, value: { n: 2 } })).toMatchObject({ status: 200 });
    await first.close();

    const late = await startGateway({ redisUrls });
    const told = new RegExp(`fleet ${keeper}`);
    const ready = await fetch(`${late.adminUrl}/ready`);
    const { checks } = (await ready.json()) as { checks: readonly { name: string; status: string; detail: string }[] };
    expect(ready.status).toBe(503);
    expect(checks.find(({ name }) => name === "restore")).toMatchObject({ status: "failed", detail: expect.stringMatching(told) });
    expect((await fetch(`${late.url}/v1/resources/${names[other]}`)).status).toBe(200);
    expect(await put(late.url, names[other], { token: leases[other].token, value: { n: 3 } })).toMatchObject({
      status: 503,
      json: { outcome: "not_applied", detail: expect.stringMatching(/the lock could not be asked; \/ready says more/) },
    });
    await Promise.all(servers[keeper].map((node) => node.restart()));
    await expect
      .poll(async () => (await put(late.url, names[other], { token: leases[other].token, value: { n: 4 } })).status, patient)
      .toBe(200);
  },
);

/** Which fleet has the mark of the database. */
async function keeperOfBeat(servers: { readonly east: readonly RedisNode[]; readonly west: readonly RedisNode[] }) {
  const marksOf = async ([node]: readonly RedisNode[]): Promise<string> => String(await node?.cli("HKEYS", "{palisade}:marks"));
  await expect.poll(async () => (await marksOf(servers.east)) + (await marksOf(servers.west)), patient).toContain("palisade-gateway/");
  return (await marksOf(servers.east)).includes("palisade-gateway/") ? "east" : "west";
}
