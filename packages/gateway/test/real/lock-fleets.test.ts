// A gateway whose lock has several fleets: each token is verified with the fleet that its resource
// belongs to.
import { createLocker, type Locker } from "@palisade/lock";
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
