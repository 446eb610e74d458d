// Which nodes are members of a fleet: lockers with other lists, addresses that lead elsewhere. Members
// that change while leases are taken are told in simulated time (unit/redis/admission/members.test.ts).

import { setImmediate as immediate } from "node:timers/promises";
import type { Lease, Locker } from "@palisade/lock";
import type { StartFleet } from "@palisade/testkit/vitest";
import { describe, expect, type OpenLocker, test } from "./lock-test.js";
import { standingIn } from "./redis/middlemen.js";

/** What callers see: which tokens were given, and whether a lease was given while another was held. */
class LeaseHistory {
  leases = 0;
  duplicates = 0;
  overlaps = 0;
  /** Tokens that are not above that of a lease which was granted before the call. */
  sunk = 0;
  longestMs = 0;
  readonly #given = new Set<string>();
  readonly #last = new Map<string, number>();
  readonly #holding = new Map<string, Set<Lease>>();

  /** Takes one lease after the other until it is over. */
  async work(locker: Locker, resource: string, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const askedAt = performance.now();
      const before = this.#last.get(resource) ?? 0;
      const lease = await locker.acquire(resource).catch(() => undefined);
      if (lease === undefined) {
        await immediate();
        continue;
      }
      await this.#keep(resource, lease, before);
      this.longestMs = Math.max(this.longestMs, performance.now() - askedAt);
      this.leases++;
      await lease.release();
    }
  }

  /** Compares it with those that are held, and holds it for a moment itself. */
  async #keep(resource: string, lease: Lease, before: number): Promise<void> {
    const holding = this.#holding.get(resource) ?? new Set();
    this.#holding.set(resource, holding);
    for (const other of holding) if (other.held) this.overlaps++;
    holding.add(lease);
    if (this.#given.has(`${resource} ${lease.token}`)) this.duplicates++;
    this.#given.add(`${resource} ${lease.token}`);
    if (lease.token <= before) this.sunk++;
    this.#last.set(resource, lease.token);
    await immediate();
    holding.delete(lease);
  }

  all(lockers: readonly Locker[], isOver: () => boolean, resources: readonly string[] = ["a", "b", "c"]): Promise<unknown> {
    return Promise.all(lockers.flatMap((locker) => resources.map((resource) => this.work(locker, resource, isOver))));
  }

  get broken(): object {
    return { duplicates: this.duplicates, overlaps: this.overlaps, sunk: this.sunk };
  }
}

const unbroken = { duplicates: 0, overlaps: 0, sunk: 0 };

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
    const endsAt = performance.now() + 3 * ttlMs;
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
  const options = { ttlMs: 600, maxTtlMs: 600 };
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
