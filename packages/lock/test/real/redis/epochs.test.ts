// T2 while the memory of a member is rebuilt: what is stored on a node after its floor was read for
// the rebuilding is not counted by attempts that began before. Each story is told twice: by what
// the nodes answered (the damage without the check) and by what may be counted (none with it).
import type { RedisFleet } from "@palisade/testkit";
import { describe, expect, type StartFleet, test } from "@palisade/testkit/vitest";
import { Redis } from "ioredis";
import type { GrantBallot, SealBallot } from "../../../src/protocol/ballot.js";
import { keysOf } from "../../../src/protocol/verbs.js";
import type { ScriptCall } from "../../../src/redis/calls.js";
import {
  type AdmitArguments,
  admit,
  generationOf,
  type OpenAdmission,
  type OpenAdmissionArguments,
  openAdmission,
  type Roster,
  readAdmissionRecord,
  readFloor,
} from "../../../src/redis/record.js";
import { asking, type Opened, opened } from "./opened-fleet.js";

const namespace = "epochs";
const keys = keysOf(namespace);
const maxTtlMs = 100;
const quorum = 2;

interface Story extends AsyncDisposable {
  readonly servers: RedisFleet;
  /** A locker whose network is fine. */
  readonly lock: Opened;
  /** A locker behind a network of its own, that waits for ever. */
  readonly patient: Opened;
  readonly network: Awaited<ReturnType<RedisFleet["anotherWay"]>>;
  /** The epochs that the patient locker knew before it began. */
  readonly noted: readonly (string | undefined)[];
  readonly floor: number;
}

async function story(fleet: StartFleet, longestMs = maxTtlMs): Promise<Story> {
  const servers = await fleet({ nodes: 3, appendfsync: "no", config: { appendonly: "no", save: "" } });
  const lock = await opened(servers.urls, { namespace, maxTtlMs: longestMs });
  const network = await servers.anotherWay();
  const patient = await opened(network.urls, {
    namespace,
    maxTtlMs: longestMs,
    nodeTimeoutMs: 20_000,
    connectTimeoutMs: 20_000,
  });
  return {
    servers,
    lock,
    patient,
    network,
    noted: patient.fleet.nodes.map((node) => node.epoch()),
    floor: Number(await servers.nodes[0]?.cli("HGET", keys.node, "floor")),
    async [Symbol.asyncDispose]() {
      await Promise.all([lock.fleet.close(), patient.fleet.close()]);
    },
  };
}

/** By whichever locker comes first. */
async function forgetAndRebuild({ servers, lock, patient }: Story, name: string): Promise<void> {
  const later = [lock.fromNow(), patient.fromNow()];
  await servers.node(name).restart({ forget: true });
  expect(await Promise.race(later.map((reports) => reports.heard("admitted", name)))).toMatchObject({
    way: "rebuilt",
  });
}

function tokensOf(ballots: readonly GrantBallot[]): number[] {
  return ballots.map((ballot) => (ballot.kind === "granted" ? ballot.token : 0));
}

/** The ballots that carry the epoch that was noted for their node. */
function countable<Ballot extends GrantBallot | SealBallot>(ballots: readonly Ballot[], { noted }: Story): readonly Ballot[] {
  return ballots.filter((ballot) => "epoch" in ballot && ballot.epoch === noted[Number(ballot.node.slice(1)) - 1]);
}

describe("rebuilding", () => {
  test("T2 a grant that arrives after another member was rebuilt from its node is not counted; counted, it makes two leases with one token", async ({
    fleet,
  }) => {
    await using it = await story(fleet);
    const late = asking("a", maxTtlMs);
    it.network.proxies[0]?.holdRequests();
    const onTheirWay = [it.patient.node("n3").ask("grant", late), it.patient.node("n1").ask("grant", late)];
    await onTheirWay[0];
    await forgetAndRebuild(it, "n3");
    it.network.proxies[0]?.deliver();
    const theirs = await Promise.all(onTheirWay);
    const next = asking("a");
    await expect.poll(() => it.lock.node("n3").ask("grant", next)).toMatchObject({ kind: "granted" });
    const ours = await Promise.all(["n2", "n3"].map((name) => it.lock.node(name).ask("grant", next)));
    // Without the check: a quorum granted each of them exactly this token.
    expect(tokensOf(theirs)).toEqual([it.floor + 1, it.floor + 1]);
    expect(tokensOf(ours)).toEqual([it.floor + 1, it.floor + 1]);
    // With it, the late one has no quorum.
    expect(countable(theirs, it).length).toBeLessThan(quorum);
  });

  test("T1 a seal that arrives after another member was rebuilt from its node is not counted; counted, the next lease's token is lower", async ({
    fleet,
  }) => {
    // Long enough for the clock to be set back before the lock has run out.
    const ttlMs = 1_500;
    await using it = await story(fleet, ttlMs);
    const late = asking("a", ttlMs);
    await it.lock.node("n3").ask("raise", { resources: ["a"], token: it.floor + 50, remove: "nothing" });
    const granted = await Promise.all(["n1", "n3"].map((name) => it.patient.node(name).ask("grant", late)));
    const token = Math.max(...tokensOf(granted));
    // A node whose clock was set back keeps the lock for longer than the rebuilt node waits.
    await it.servers.nodes[0]?.shiftClock(-60_000);
    it.network.proxies[0]?.holdRequests();
    const sealing = it.patient.node("n1").ask("seal", { ...late, token });
    await forgetAndRebuild(it, "n3");
    it.network.proxies[0]?.deliver();
    const sealed = await sealing;
    const next = asking("a");
    await expect.poll(() => it.lock.node("n3").ask("grant", next)).toMatchObject({ kind: "granted" });
    const ours = await Promise.all(["n2", "n3"].map((name) => it.lock.node(name).ask("grant", next)));
    // Without the check: granted exactly the token on n3, sealed on n1, a quorum; and the next
    // lease starts far below.
    expect(sealed).toMatchObject({ kind: "sealed" });
    expect(token).toBe(it.floor + 51);
    expect(Math.max(...tokensOf(ours))).toBeLessThan(token);
    expect(countable([sealed], it)).toEqual([]);
  });

  test("T2 a grant from a node's forgotten life is not counted together with one from its new life", async ({ fleet }) => {
    await using it = await story(fleet);
    const before = it.lock.node("n3").epoch();
    await forgetAndRebuild(it, "n3");
    await expect.poll(() => it.lock.node("n3").epoch()).not.toBeOneOf([undefined, before]);
  });

  test("an attempt that begins after the rebuilding counts every node at once: the new epochs come with the first replies", async ({
    fleet,
  }) => {
    await using it = await story(fleet);
    // Only the other locker rebuilds: a visit of this one's own would begin another epoch later.
    for (const proxy of it.network.proxies) proxy.holdRequests();
    await forgetAndRebuild(it, "n3");
    for (const proxy of it.network.proxies) proxy.deliver();
    const first = asking("a");
    for (const node of it.patient.fleet.nodes) await expect.poll(() => node.ask("grant", first)).toMatchObject({ kind: "granted" });
    const noted = it.patient.fleet.nodes.map((node) => node.epoch());
    const ballots = await Promise.all(it.patient.fleet.nodes.map((node) => node.ask("grant", asking("b"))));
    expect(countable(ballots, { ...it, noted })).toHaveLength(3);
  });
});

describe("nonces", () => {
  const arrived: OpenAdmissionArguments = {
    nonce: "t1",
    id: "id1",
    wallMs: 4_000_000_000_000,
    maxTtlMs,
    sinceGeneration: 0,
    founding: "",
  };

  const roster: Roster = { generation: 1, members: [{ id: "id1", address: "a", since: 1 }], maxTtlMs, formerMaxTtlMs: maxTtlMs };
  const generation = generationOf(roster);

  async function asked<Reply>(redis: Redis, call: ScriptCall<Reply>): Promise<Reply> {
    return call.read(await redis.eval(call.source, 2, keys.node, keys.marks, ...call.args));
  }

  function admitting({ runId, nonce, id }: OpenAdmission): AdmitArguments {
    return {
      runId,
      nonce,
      id,
      floor: 100,
      epoch: "e1",
      fleet: "f",
      durable: "durable",
      roster,
      founding: "",
    };
  }

  async function alone(fleet: StartFleet): Promise<{ servers: RedisFleet; redis: Redis } & AsyncDisposable> {
    const servers = await fleet({ nodes: 1 });
    const redis = new Redis(servers.nodes[0]?.directUrl ?? "");
    return { servers, redis, [Symbol.asyncDispose]: async () => redis.disconnect() };
  }

  test("lockers that meet a node at the same time read the same nonce, and only one of them admits the node", async ({ fleet }) => {
    await using it = await alone(fleet);
    const first = await asked(it.redis, openAdmission(arrived));
    const second = await asked(
      it.redis,
      openAdmission({
        nonce: "t2",
        id: "id2",
        wallMs: 5_000_000_000_000,
        maxTtlMs: 5,
        sinceGeneration: 0,
        founding: "",
      }),
    );
    expect(first).toMatchObject({
      nonce: "t1",
      id: "id1",
      proposedFloor: 400_000_000_000_000,
      proposedMaxTtlMs: maxTtlMs,
    });
    expect(second).toMatchObject({ ...first, lostForMs: expect.any(Number) });
    expect(await asked(it.redis, admit(admitting(first as OpenAdmission)))).toBe(100);
    expect(await asked(it.redis, admit({ ...admitting(second as OpenAdmission), floor: 200 }))).toBe(undefined);
    expect(await asked(it.redis, openAdmission(arrived))).toBe(undefined);
  });

  test("a clock past the year 2286, where the range of tokens ends, proposes no floor, and two of them open nothing", async ({ fleet }) => {
    await using it = await alone(fleet);
    const ahead = { ...arrived, wallMs: 10_000_000_000_000 };
    const before = Date.now();
    const first = (await asked(it.redis, openAdmission(ahead))) as OpenAdmission;
    expect(first.proposedFloor).toBeGreaterThanOrEqual(before * 100);
    expect(first.proposedFloor).toBeLessThanOrEqual(Date.now() * 100);
    await it.redis.flushall();
    await it.servers.nodes[0]?.shiftClock(8_650_000_000_000);
    await expect(asked(it.redis, openAdmission(ahead))).rejects.toThrow("CLOCK the node and the locker are in the year 2286");
    expect(await asked(it.redis, openAdmission(arrived))).toMatchObject({ proposedFloor: 400_000_000_000_000 });
  });

  test("T2 a slow locker cannot admit a node that was admitted and has lost its memory since, in the same life of the server", async ({
    fleet,
  }) => {
    await using it = await alone(fleet);
    const slow = (await asked(it.redis, openAdmission(arrived))) as OpenAdmission;
    expect(await asked(it.redis, admit(admitting(slow)))).toBe(100);
    await it.redis.flushall();
    expect(await asked(it.redis, admit(admitting(slow)))).toBe(undefined);
    const later = await asked(it.redis, openAdmission({ ...arrived, nonce: "t2" }));
    expect(later).toMatchObject({ nonce: "t2" });
    expect(await asked(it.redis, admit(admitting(slow)))).toBe(undefined);
  });

  test("T2 a slow locker cannot admit a node in its next life, even if the nonce was kept", async ({ fleet }) => {
    await using it = await alone(fleet);
    const slow = (await asked(it.redis, openAdmission(arrived))) as OpenAdmission;
    it.redis.disconnect();
    await it.servers.nodes[0]?.restart();
    await using next = {
      redis: new Redis(it.servers.nodes[0]?.directUrl ?? ""),
      [Symbol.asyncDispose]: async () => next.redis.disconnect(),
    };
    expect(await next.redis.hget(keys.node, "ticket")).toBe("t1");
    expect(await asked(next.redis, admit(admitting(slow)))).toBe(undefined);
    expect(await asked(next.redis, openAdmission({ ...arrived, nonce: "t2" }))).toMatchObject({
      nonce: "t2",
      id: "id1",
    });
  });

  test("reading a floor changes the epoch in the same script, and needs an admitted node", async ({ fleet }) => {
    await using it = await alone(fleet);
    expect(await asked(it.redis, readFloor("e2", generation))).toBe(undefined);
    expect(await it.redis.exists(keys.node)).toBe(0);
    const made = (await asked(it.redis, openAdmission(arrived))) as OpenAdmission;
    expect(await asked(it.redis, readFloor("e2", generation))).toBe(undefined);
    await asked(it.redis, admit(admitting(made)));
    expect(await asked(it.redis, readFloor("e2", "2-another"))).toBe(undefined);
    expect(await asked(it.redis, readFloor("e2", generation))).toBe(100);
    const admitted = (await it.redis.hget(keys.node, "admitted")) ?? "";
    expect(readAdmissionRecord(admitted)).toMatchObject({ counterFloor: 100, epoch: `${generation}:e2` });
    const inAnotherLife = `another life`.padEnd(40) + admitted.slice(40);
    await it.redis.hset(keys.node, "admitted", inAnotherLife);
    expect(await asked(it.redis, readFloor("e3", generation))).toBe(undefined);
    expect(await it.redis.hget(keys.node, "admitted")).toBe(inAnotherLife);
  });

  test("an admission that its locker left half-way is taken over", async ({ fleet }) => {
    await using it = await story(fleet);
    const third = it.servers.node("n3");
    await it.network.refuse();
    const later = it.lock.fromNow();
    await third.partition();
    await third.restart({ forget: true });
    const redis = new Redis(third.directUrl);
    await asked(redis, openAdmission({ ...arrived, sinceGeneration: 1 }));
    redis.disconnect();
    await third.heal();
    await later.heard("quarantined", "n3");
    expect(await later.heard("admitted", "n3")).toMatchObject({ way: "rebuilt" });
  });
});
