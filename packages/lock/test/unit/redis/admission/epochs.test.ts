// T2 while the memory of a member is rebuilt: what is stored on a node after its floor was read for
// the rebuilding is not counted by attempts that began before. Each story is told twice: by what
// the nodes answered (the damage without the check) and by what may be counted (none with it).
import { describe, expect } from "vitest";
import type { GrantBallot, SealBallot } from "../../../../src/protocol/ballot.js";
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
} from "../../../../src/redis/record.js";
import { type Actor, asking, type Story, test } from "../../../simulation/story.js";

const maxTtlMs = 100;
const forgetful = { nodes: 3, appendfsync: "no" } as const;

interface Told {
  /** A locker whose network is fine. */
  readonly lock: Actor;
  /** A locker that waits for ever. */
  readonly patient: Actor;
  /** The epochs that the patient locker knew before it began. */
  readonly noted: readonly (string | undefined)[];
  readonly floor: number;
}

async function told(story: Story, longestMs = maxTtlMs): Promise<Told> {
  const options = { ttlMs: longestMs, maxTtlMs: longestMs };
  const lock = story.actor(options);
  await lock.locker.ready();
  const patient = story.actor({ ...options, timeoutMs: 20_000 });
  await patient.locker.ready();
  await story.until(() => [lock, patient].every(({ fleet }) => fleet.state().admitted.length === 3), "all nodes are admitted");
  const noted = patient.fleet.nodes.map((node) => node.epoch());
  return { lock, patient, noted, floor: Number(story.nodes[0]?.field("floor")) };
}

/** By whichever locker comes first. */
async function forgetAndRebuild(story: Story, { lock, patient }: Told): Promise<void> {
  const later = [lock, patient].map((actor) => actor.heard("admitted", "n3"));
  story.nodes[2]?.forget();
  expect(await Promise.race(later)).toMatchObject({ way: "rebuilt" });
}

const tokensOf = (ballots: readonly GrantBallot[]): number[] => ballots.map((ballot) => (ballot.kind === "granted" ? ballot.token : 0));

/** The ballots that carry the epoch that was noted for their node. */
const countable = (ballots: readonly (GrantBallot | SealBallot)[], noted: Told["noted"]) =>
  ballots.filter((ballot) => "epoch" in ballot && ballot.epoch === noted[Number(ballot.node.slice(1)) - 1]);

/** What n2 and n3 answer to the next attempt, once n3 votes again. */
async function nextOf(story: Story, { lock }: Told): Promise<readonly GrantBallot[]> {
  const next = asking("a", maxTtlMs);
  const ask = async (name: string) => lock.node(name).ask("grant", next);
  await story.until(async () => (await ask("n3")).kind === "granted", "n3 grants");
  return Promise.all(["n2", "n3"].map(ask));
}

describe("rebuilding", () => {
  test(
    "T2 a grant that arrives after another member was rebuilt from its node is not counted; counted, it makes two leases with one token",
    async (story) => {
      const it = await told(story);
      const late = asking("a", maxTtlMs);
      it.patient.hold("n1");
      const onTheirWay = ["n3", "n1"].map(async (name) => it.patient.node(name).ask("grant", late));
      await onTheirWay[0];
      await forgetAndRebuild(story, it);
      it.patient.deliver();
      const theirs = await Promise.all(onTheirWay);
      // Without the check: a quorum granted each of them exactly this token.
      expect(tokensOf(theirs)).toEqual([it.floor + 1, it.floor + 1]);
      expect(tokensOf(await nextOf(story, it))).toEqual([it.floor + 1, it.floor + 1]);
      // With it, the late one has no quorum.
      expect(countable(theirs, it.noted).length).toBeLessThan(2);
    },
    forgetful,
  );

  test(
    "T1 a seal that arrives after another member was rebuilt from its node is not counted; counted, the next lease's token is lower",
    async (story) => {
      const it = await told(story);
      const late = asking("a", maxTtlMs);
      await it.lock.node("n3").ask("raise", { resources: ["a"], token: it.floor + 50 });
      const granted = await Promise.all(["n1", "n3"].map(async (name) => it.patient.node(name).ask("grant", late)));
      const token = Math.max(...tokensOf(granted));
      // A node whose clock was set back keeps the lock for longer than the rebuilt node waits.
      story.nodes[0]?.server.jumpClock(-60_000);
      it.patient.hold("n1");
      const sealing = it.patient.node("n1").ask("seal", { ...late, token });
      await forgetAndRebuild(story, it);
      it.patient.deliver();
      const sealed = await sealing;
      // Without the check: granted exactly the token on n3, sealed on n1, a quorum; and the next
      // lease starts far below.
      expect(sealed).toMatchObject({ kind: "sealed" });
      expect(token).toBe(it.floor + 51);
      expect(Math.max(...tokensOf(await nextOf(story, it)))).toBeLessThan(token);
      expect(countable([sealed], it.noted)).toEqual([]);
    },
    forgetful,
  );

  test(
    "an attempt that begins after the rebuilding counts every node at once: the new epochs come with the first replies",
    async (story) => {
      const it = await told(story);
      // Only the other locker rebuilds: a visit of this one's own would begin another epoch later.
      for (const { name } of story.nodes) it.patient.hold(name);
      await forgetAndRebuild(story, it);
      it.patient.deliver();
      const first = asking("a", maxTtlMs);
      const { nodes } = it.patient.fleet;
      for (const node of nodes) await story.until(async () => (await node.ask("grant", first)).kind === "granted", "it grants");
      const noted = nodes.map((node) => node.epoch());
      expect(noted[2]).not.toBe(it.noted[2]);
      const ballots = await Promise.all(nodes.map(async (node) => node.ask("grant", asking("b", maxTtlMs))));
      expect(countable(ballots, noted)).toHaveLength(3);
    },
    forgetful,
  );

  test(
    "an admission that its locker left half-way is taken over",
    async (story) => {
      const it = await told(story);
      it.patient.kill();
      const [, , third] = story.nodes;
      third?.partition();
      third?.forget();
      third?.run(openAdmission({ ...arrived, sinceGeneration: 1 }));
      const later = it.lock.heard("admitted", "n3");
      third?.heal();
      expect(await later).toMatchObject({ way: "rebuilt" });
    },
    forgetful,
  );
});

const arrived: OpenAdmissionArguments = {
  nonce: "t1",
  id: "id1",
  wallMs: 4_000_000_000_000,
  maxTtlMs,
  sinceGeneration: 0,
  founding: "",
};

describe("nonces", () => {
  const roster: Roster = { generation: 1, members: [{ id: "id1", address: "a", since: 1 }], maxTtlMs, formerMaxTtlMs: maxTtlMs };
  const generation = generationOf(roster);
  const alone = { nodes: 1 } as const;
  const one = ({ nodes: [node] }: Story) => node as NonNullable<typeof node>;

  function admitting(opened: OpenAdmission | undefined): AdmitArguments {
    const { runId, nonce, id } = opened as OpenAdmission;
    return { runId, nonce, id, floor: 100, epoch: "e1", fleet: "f", durable: "durable", roster, founding: "" };
  }

  test(
    "lockers that meet a node at the same time read the same nonce, and only one of them admits the node",
    async (story) => {
      const node = one(story);
      const first = node.run(openAdmission(arrived));
      const second = node.run(openAdmission({ ...arrived, nonce: "t2", id: "id2", wallMs: 5_000_000_000_000, maxTtlMs: 5 }));
      expect(first).toMatchObject({ nonce: "t1", id: "id1", proposedFloor: 400_000_000_000_000, proposedMaxTtlMs: maxTtlMs });
      expect(second).toEqual(first);
      expect(node.run(admit(admitting(first)))).toBe(100);
      expect(node.run(admit({ ...admitting(second), floor: 200 }))).toBe(undefined);
      expect(node.run(openAdmission(arrived))).toBe(undefined);
    },
    alone,
  );

  test(
    "T1 a clock past the year 2286, where the range of tokens ends, proposes no floor, and two of them open nothing",
    async (story) => {
      const node = one(story);
      const ahead = { ...arrived, wallMs: 10_000_000_000_000 };
      expect(node.run(openAdmission(ahead))?.proposedFloor).toBe(node.server.wallMs() * 100);
      node.server.memory.clear();
      node.server.jumpClock(8_650_000_000_000);
      expect(() => node.run(openAdmission(ahead))).toThrow("CLOCK the node and the locker are in the year 2286");
      expect(node.run(openAdmission(arrived))).toMatchObject({ proposedFloor: 400_000_000_000_000 });
    },
    alone,
  );

  test(
    "T2 a slow locker cannot admit a node that was admitted and has lost its memory since, in the same life of the server or the next",
    async (story) => {
      const node = one(story);
      const slow = admitting(node.run(openAdmission(arrived)));
      expect(node.run(admit(slow))).toBe(100);
      node.server.memory.clear();
      expect(node.run(admit(slow))).toBe(undefined);
      expect(node.run(openAdmission({ ...arrived, nonce: "t2" }))).toMatchObject({ nonce: "t2" });
      expect(node.run(admit(slow))).toBe(undefined);
      node.restart();
      expect(node.field("nonce")).toBe("t2");
      expect(node.run(admit({ ...slow, nonce: "t2" }))).toBe(undefined);
      expect(node.run(openAdmission({ ...arrived, nonce: "t3", id: "id2" }))).toMatchObject({ nonce: "t3", id: "id2" });
    },
    alone,
  );

  test(
    "T2 reading a floor changes the epoch in the same script, and needs an admitted node",
    async (story) => {
      const node = one(story);
      const read = (epoch: string, of = generation) => node.run(readFloor(epoch, of));
      expect(read("e2")).toBe(undefined);
      expect(node.field("admitted")).toBe(null);
      const made = node.run(openAdmission(arrived));
      expect(read("e2")).toBe(undefined);
      node.run(admit(admitting(made)));
      expect(read("e2", "2-another")).toBe(undefined);
      expect(read("e2")).toBe(100);
      const admitted = node.field("admitted") ?? "";
      expect(readAdmissionRecord(admitted)).toMatchObject({ counterFloor: 100, epoch: `${generation}:e2` });
      node.restart();
      expect(read("e3")).toBe(undefined);
      expect(node.field("admitted")).toBe(admitted);
    },
    alone,
  );
});
