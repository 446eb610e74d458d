// Which nodes are members of a fleet: lockers with other lists, addresses that lead elsewhere. Members
// that change while leases are taken are told in simulated time (unit/redis/admission/members.test.ts).

import type { StartFleet } from "@palisade/testkit/vitest";
import { describe, expect, type OpenLocker, test } from "./lock-test.js";
import { standingIn } from "./redis/middlemen.js";
import { asking, opened } from "./redis/opened-fleet.js";

const patient = { timeout: 60_000 };

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
  const locker = open({ nodes: urls, waitMs: 0, ttlMs: 200, maxTtlMs: 200 });
  const told = expect.stringMatching(
    /a new fleet is founded only when all 3 nodes can be reached; n3 at \S+ is not; locker\.fleet\.foundWithout founds it all the same/,
  );
  await expect(locker.acquire("a")).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: told });
  await expect(locker.ready()).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: told });
  await locker.fleet.foundWithout(["n3"]);
  expect((await locker.acquire("a", { waitMs: 5_000 })).held).toBe(true);
  await nodes[2]?.restart();
  await expect.poll(async () => (await locker.ready()).admitted, { timeout: 30_000 }).toEqual(["n1", "n2", "n3"]);
});

test(
  "M1 members are removed, added and replaced on real servers, and one that left leads a process with the old list to the others",
  patient,
  async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 4 });
    const [, , third = "", fourth = ""] = urls;
    const options = { nodes: urls.slice(0, 3), ttlMs: 200, maxTtlMs: 200 };
    const locker = open(options);
    const address = new URL(third).host;
    expect(await locker.fleet.reconfigure({ remove: address })).toMatchObject({
      generation: 2,
      members: expect.not.arrayContaining([address]),
    });
    expect(await nodes[2]?.cli("HGET", "{palisade}:node", "members")).toContain('{"generation":2,');
    expect(await locker.fleet.reconfigure({ add: third })).toMatchObject({ generation: 3, members: expect.arrayContaining([address]) });
    const replaced = await locker.fleet.reconfigure({ replace: address, by: fourth });
    expect(replaced.members).toContain(new URL(fourth).host);
    await expect.poll(async () => (await locker.ready()).admitted.length, { timeout: 30_000 }).toBe(3);
    expect(await open({ ...options, nodes: [third] }).fleet.members()).toEqual(replaced);
  },
);

test("T2 a locker for whom two URLs lead to one server must not vote, also if that shows only later", async ({ fleet }) => {
  const servers = await fleet({ nodes: 2 });
  const another = await servers.nodes[0]?.anotherWay();
  await another?.refuse();
  const url = `redis://127.0.0.1:${another?.port}`;
  await using lock = await opened([...servers.urls, url], { namespace: "palisade" });
  expect(lock.fleet.refusal).toBe(undefined);
  await another?.heal();
  await lock.heard("fleet_refused");
  expect(lock.fleet.refusal).toMatchObject({ kind: "mismatch", code: "same_server" });
  expect(lock.fleet.refusal?.message).toMatch(/^n1 \(.*\) and n3 \(.*\) are one server \(run_id [0-9a-f]{8}…\), which would vote twice/);
  expect(await lock.node("n3").ask("grant", asking("a"))).toMatchObject({
    kind: "unreachable",
    cause: expect.stringContaining("FLEET_MISMATCH"),
  });
  expect(await servers.nodes[0]?.cli("HEXISTS", "{palisade}:node", "admitted")).toBe(0);
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
