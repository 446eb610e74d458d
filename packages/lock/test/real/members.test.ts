// Which nodes are members of a fleet: lockers with other lists, members replaced, added and removed
// while leases are taken and held.
import type { Locker } from "@palisade/lock";
import type { StartFleet } from "@palisade/testkit/vitest";
import { LeaseHistory, unbroken } from "./lease-history.js";
import { describe, expect, type OpenLocker, test } from "./lock-test.js";
import { standingIn } from "./redis/middlemen.js";

const patient = { timeout: 60_000 };

const ttlMs = 300;

describe("lockers with different lists", () => {
  test("M1 T2 L2 half of them with n1, n2, n3 and half with n1, n2, n4 hold no lease twice and give no token twice", async ({
    fleet,
    open,
  }) => {
    const servers = await fleet({ nodes: 4 });
    const [n1 = "", n2 = "", n3 = "", n4 = ""] = servers.urls;
    const right = Array.from({ length: 2 }, () => open({ nodes: [n1, n2, n3], ttlMs, maxTtlMs: ttlMs, waitMs: 5_000 }));
    await Promise.all(right.map((locker) => locker.ready()));
    const wrong = Array.from({ length: 2 }, () => open({ nodes: [n1, n2, n4], ttlMs, maxTtlMs: ttlMs, waitMs: 5_000 }));
    await Promise.all(wrong.map((locker) => locker.ready()));
    // Longer than a node that lost its memory would have to wait.
    const endsAt = performance.now() + 6 * ttlMs;
    const witness = new LeaseHistory();
    await witness.all([...right, ...wrong], () => performance.now() > endsAt);
    expect(witness.leases).toBeGreaterThan(10);
    expect(witness.broken).toEqual(unbroken);
    const findings = await wrong[0]?.fleet.doctor();
    expect(findings).toContainEqual(
      expect.objectContaining({ code: "members", message: expect.stringMatching(/^generation 1 has n4 \(.*\) in place of n3 \(.*\)/) }),
    );
  });
});

test("M1 a member that lost its memory is the node that is configured, where the roster has another way to it", async ({ fleet, open }) => {
  const { urls, nodes } = await fleet({ nodes: 3 });
  const options = { ttlMs: 2_000, maxTtlMs: 2_000 };
  const founder = open({ nodes: urls, ...options });
  await founder.ready();
  await founder.close();
  await nodes[2]?.restart({ forget: true });
  const locker = open({ nodes: nodes.map(({ directUrl }) => directUrl), ...options });
  expect((await locker.ready()).quarantined).toMatchObject([{ node: "n3" }]);
  await Promise.all(nodes.map((node) => node.partition()));
  await expect.poll(async () => (await locker.ready()).admitted, { timeout: 30_000 }).toEqual(["n1", "n2", "n3"]);
  const findings = await locker.fleet.doctor();
  expect(findings.filter(({ code }) => code === "members" || code === "same_server")).toEqual([]);
});

const addressOf = (url: string): string => new URL(url).host;

test("a first call while a node is down is told that a new fleet needs all, which one is missing, and the way out", async ({
  fleet,
  open,
}) => {
  const { urls, nodes } = await fleet({ nodes: 3 });
  await nodes[2]?.kill();
  const locker = open({ nodes: urls, waitMs: 0 });
  const told = expect.stringMatching(
    /a new fleet is founded only when all 3 nodes can be reached; n3 at \S+ is not; locker\.fleet\.foundWithout founds it all the same/,
  );
  await expect(locker.acquire("a")).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: told });
  await expect(locker.ready()).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: told });
  await locker.fleet.foundWithout(["n3"]);
  expect((await locker.acquire("a", { waitMs: 5_000 })).held).toBe(true);
});

describe("a member's address that leads elsewhere", () => {
  async function story(fleet: StartFleet, open: OpenLocker) {
    const { urls, nodes } = await fleet({ nodes: 4 });
    const [n1 = "", n2 = "", n3 = "", n4 = ""] = urls;
    await using other = open({ nodes: [n4] });
    await other.ready();
    const upstreamOf = (url: string) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) });
    const way = await standingIn(upstreamOf(n3));
    const options = { nodes: [n1, n2, way.url], ttlMs: 2_000 };
    const locker = open(options);
    await locker.ready();
    const held = await locker.acquire("held", { renew: true });
    /** As it is for a locker that has been there, and for one that begins now. */
    const judged = async (url: string) => {
      await way.standIn(upstreamOf(url));
      const excluded = async () => (await locker.ready()).quarantined.map(({ node, reason }) => `${node} ${reason}`);
      await expect.poll(excluded, { timeout: 30_000 }).toHaveLength(1);
      await using late = open(options);
      await late.ready();
      for (const each of [locker, late]) {
        const state = await each.ready();
        expect(state.admitted).toEqual(["n1", "n2"]);
        const lease = await each.acquire(`by ${each === late ? "late" : "early"}`);
        expect(lease.ballots).toContainEqual(expect.objectContaining({ node: "n3", cause: expect.stringMatching(/^FLEET_MISMATCH/) }));
        const findings = await each.fleet.doctor();
        expect(findings.filter(({ code }) => code === "fleet_mismatch").map(({ node }) => node)).toEqual(["n3"]);
      }
      const [reason = ""] = await excluded();
      await way.standIn(upstreamOf(n3));
      await expect.poll(async () => (await locker.ready()).admitted, { timeout: 30_000 }).toEqual(["n1", "n2", "n3"]);
      return reason;
    };
    return { nodes, urls: { n1, n4 }, held, judged, [Symbol.asyncDispose]: () => way[Symbol.asyncDispose]() };
  }

  test("L2 to another fleet's node: only that one is silenced, and named; leases are kept", patient, async ({ fleet, open }) => {
    await using it = await story(fleet, open);
    expect(await it.judged(it.urls.n4)).toMatch(/^n3 FLEET_MISMATCH: n3 \(.*\) belongs to fleet \S+, the other members to fleet \S+;/);
    expect(it.held.held).toBe(true);
  });

  test(
    "T2 to another member: it does not vote twice, only the second way is silenced, and leases are kept",
    patient,
    async ({ fleet, open }) => {
      await using it = await story(fleet, open);
      expect(await it.judged(it.urls.n1)).toMatch(/^n3 FLEET_MISMATCH: n1 \(.*\) and n3 \(.*\) are one server/);
      expect(it.held.held).toBe(true);
    },
  );
});

test("reconfigure of a locker that is closed rejects with LOCK_ABORTED, and can be asked for again", async ({ fleet, open }) => {
  const { urls, nodes } = await fleet({ nodes: 4 });
  const [first, second] = [open({ nodes: urls.slice(0, 3) }), open({ nodes: urls.slice(0, 3) })];
  await first.ready();
  await nodes[3]?.partition();
  const asked = expect(first.fleet.reconfigure({ add: urls[3] ?? "" })).rejects.toMatchObject({ code: "LOCK_ABORTED" });
  await first.close();
  await asked;
  await nodes[3]?.heal();
  expect((await second.fleet.reconfigure({ add: urls[3] ?? "" })).members).toHaveLength(4);
});

describe("reconfigure", () => {
  test(
    "W1 a caller that waits while a member is replaced listens to the newcomer, and has the lock when it is released",
    patient,
    async ({ fleet, open }) => {
      const { urls, nodes } = await fleet({ nodes: 4 });
      const [holder, waiter] = [0, 1].map(() => open({ nodes: urls.slice(0, 3), ttlMs: 2_000, maxTtlMs: 2_000 })) as [Locker, Locker];
      const held = await holder.acquire("r", { renew: true });
      const waiting = waiter.acquire("r", { waitMs: 60_000 });
      waiting.catch(() => {});
      const listeners = () =>
        Promise.all(nodes.map(async (node) => ((await node.cli("PUBSUB", "CHANNELS", "*:inbox:*")) as unknown[]).length));
      await expect.poll(listeners, { timeout: 10_000 }).toEqual([1, 1, 1, 0]);
      await holder.fleet.reconfigure({ replace: addressOf(urls[2] ?? ""), by: urls[3] ?? "" });
      await expect.poll(async () => (await listeners())[3], { timeout: 10_000 }).toBe(1);
      await held.release();
      expect((await waiting).held).toBe(true);
    },
  );

  test(
    "M1 T1 T2 L2 adds, replaces and removes members while leases are taken, and none that is held is lost",
    patient,
    async ({ fleet, open }) => {
      const servers = await fleet({ nodes: 6 });
      const [n1 = "", n2 = "", n3 = "", n4 = "", n5 = "", n6 = ""] = servers.urls;
      const lockers = Array.from({ length: 3 }, () => open({ nodes: [n1, n2, n3], ttlMs: 2_000, maxTtlMs: 2_000, waitMs: 5_000 }));
      const [operator] = lockers as [Locker, ...Locker[]];
      await operator.ready();
      const held = await operator.acquire("held", { renew: true });
      const witness = new LeaseHistory();
      let isOver = false;
      const work = witness.all(lockers, () => isOver);
      const sizes: number[] = [];
      for (const change of [
        { add: n4 },
        { add: n5 },
        { replace: addressOf(n1), by: n6 },
        { remove: addressOf(n2) },
        { remove: addressOf(n3) },
      ]) {
        const { members, generation } = await operator.fleet.reconfigure(change);
        sizes.push(members.length);
        expect(generation).toBe(sizes.length + 1);
      }
      expect(sizes).toEqual([4, 5, 5, 4, 3]);
      isOver = true;
      await work;
      expect(witness.broken).toEqual(unbroken);
      expect(held.held, String(held.signal.reason)).toBe(true);
      for (const locker of lockers) {
        const { generation, members } = await locker.fleet.members();
        expect([generation, [...members].sort()]).toEqual([6, [n4, n5, n6].map(addressOf).sort()]);
      }
      await held.release();
      // None of the nodes it was configured with is a member any more.
      await using late = open({ nodes: [n4, n5, n6], ttlMs: 1_000 });
      expect((await late.ready()).admitted).toHaveLength(3);
    },
  );
});
