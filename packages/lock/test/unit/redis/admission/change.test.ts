// How the next generation of members is agreed upon: who may accept what, when, what a changer that stops
// half-way leaves behind, and how long one tries. Its scripts are executed one by one, in simulated time.
import { describe, expect } from "vitest";
import type { ChangeWaiting } from "../../../../src/protocol/fleet.js";
import { ChangeWait, described } from "../../../../src/redis/admission/members.js";
import { scripts } from "../../../../src/redis/lua.generated.js";
import {
  accept,
  changed,
  enter,
  generationNumber,
  generationOf,
  isAdmitted,
  isClosed,
  promise,
  type Roster,
  readAdmissionRecord,
  retire,
} from "../../../../src/redis/record.js";
import { type Actor, asking, Gate, type Story, test } from "../../../simulation/story.js";
import { ManualClock } from "../../scripted-node.js";

const options = { ttlMs: 200, maxTtlMs: 200 };
const four = { nodes: 4 } as const;
const patient = { waitMs: 30_000 };

type Node = Story["nodes"][number];

interface Founded {
  readonly servers: readonly [Node, Node, Node, Node];
  readonly actor: Actor;
  readonly roster: Roster;
}

/** Three members, and a fourth server. */
async function founded(story: Story): Promise<Founded> {
  const servers = story.nodes as unknown as Founded["servers"];
  const actor = story.actor({ ...options, nodes: story.urls.slice(0, 3) });
  await actor.locker.ready();
  await story.until(() => actor.fleet.state().admitted.length === 3, "all nodes are admitted");
  return { servers, actor, roster: servers[0].status.roster as Roster };
}

/** The next generation, without the member at this server. */
const without = (roster: Roster, { status }: Node): Roster => changed(roster, { remove: status.id ?? "" });

function promises(server: Node, ballot: number) {
  const noted = server.status.admitted;
  return { noted, answer: server.run(promise(noted, ballot)) };
}

const accepts = (server: Node, roster: Roster, given: { ballot: number; noted: string; openForMs?: number }) =>
  server.run(accept({ openForMs: 0, epoch: "i", roster, ...given }));

describe("a member", () => {
  test(
    "M1 accepts only what it has promised last, tells the next changer what it accepted, and T1 does not vote from then on",
    async (story) => {
      const { actor, roster, servers } = await founded(story);
      const [n1, n2, n3] = servers;
      const yours = without(roster, n3);
      const { noted } = promises(n1, 10);
      expect(promises(n1, 10).answer).toEqual({ kind: "refused", promised: 10 });
      promises(n1, 20);
      const before = await actor.node("n1").ask("grant", asking("a", 200));
      expect(accepts(n1, without(roster, n2), { ballot: 10, noted })).toEqual({ kind: "refused" });
      const accepted = accepts(n1, yours, { ballot: 20, noted });
      expect(accepted.kind === "accepted" && before.kind === "granted" && accepted.floor >= before.token).toBe(true);
      expect(promises(n1, 30).answer).toMatchObject({ kind: "promised", accepted: 20, roster: yours });
      expect(isClosed(n1.status)).toBe(true);
      expect(await actor.node("n1").ask("grant", asking("b", 200))).toMatchObject({ kind: "quarantined" });
    },
    four,
  );

  test(
    "M1 that was rebuilt, or visited for that, has promised and will accept nothing of what a changer began before",
    async (story) => {
      const { actor, roster, servers } = await founded(story);
      const [n1, n2, n3] = servers;
      const begun = [n1, n2, n3].map((server) => [server, promises(server, 10)] as const);
      const later = actor.heard("admitted", "n3");
      n3.server.memory.clear();
      await actor.node("n3").ask("inspect", { resources: ["a"] });
      expect(await later).toMatchObject({ way: "rebuilt" });
      for (const [server, { noted, answer }] of begun) {
        expect(answer).toMatchObject({ kind: "promised" });
        expect(accepts(server, without(roster, n2), { ballot: 10, noted })).toEqual({ kind: "refused" });
        expect(server.run(promise(noted, 20))).toMatchObject({ kind: "refused" });
      }
    },
    four,
  );

  test(
    "T1 enters a generation above the highest floor that was told for it, and none that it has been in or came to later",
    async (story) => {
      const { actor, roster, servers } = await founded(story);
      const [n1, n2] = servers;
      const next = without(roster, n2);
      const { floor = 0 } = n1.status;
      const entering = (sinceGeneration: number) => n1.run(enter({ roster: next, floor: floor + 1_000, epoch: "i", sinceGeneration }));
      expect([entering(2), entering(1), entering(1)]).toEqual([false, true, false]);
      expect(readAdmissionRecord(n1.status.admitted)).toMatchObject({ generation: generationOf(next), counterFloor: floor + 1_000 });
      expect(await actor.node("n1").ask("grant", asking("a", 200))).toMatchObject({
        kind: "unreachable",
        cause: "GENERATION: it votes in generation 2, and was asked in generation 1",
      });
      actor.kill();
      // L2: it accepts nothing while leases of the generation before its own may run.
      const { noted } = promises(n1, 10);
      const third = changed(next, { maxTtlMs: 7 });
      expect(accepts(n1, third, { ballot: 10, noted, openForMs: 60_000 })).toMatchObject({ kind: "too early" });
      expect(accepts(n1, third, { ballot: 10, noted })).toMatchObject({ kind: "accepted" });
    },
    four,
  );

  test(
    "M1 is told that it left where it is no member, and not where it is one under another address",
    async (story) => {
      const { roster, servers } = await founded(story);
      const [n1] = servers;
      const { id, fleet = "" } = n1.status;
      const moved = roster.members.map((member) => (member.id === id ? { ...member, address: "elsewhere:6379" } : member));
      n1.run(retire(fleet, { ...roster, generation: 2, members: moved }));
      expect([isAdmitted(n1.status), n1.status.roster?.generation]).toEqual([true, 1]);
      n1.run(retire(fleet, without(roster, n1)));
      expect([isAdmitted(n1.status), n1.status.roster?.generation]).toEqual([false, 2]);
    },
    four,
  );
});

describe("a change", () => {
  test(
    "M1 that was left half-way is finished by any locker, if a member has accepted it",
    async (story) => {
      const { actor, roster, servers } = await founded(story);
      const [n1, n2, n3] = servers;
      accepts(n1, without(roster, n3), { ballot: 10, noted: promises(n1, 10).noted });
      // Any question tells the locker that n1 is closed.
      await actor.node("n1").ask("inspect", { resources: ["a"] });
      await story.until(() => actor.fleet.members()?.generation === 2, "the change is finished");
      expect(actor.fleet.nodes).toHaveLength(2);
      await story.until(() => isAdmitted(n1.status) && isAdmitted(n2.status), "both vote");
    },
    four,
  );

  test(
    "M1 that a majority has accepted is carried on, whatever a changer wishes that comes after it",
    async (story) => {
      const { actor, roster, servers } = await founded(story);
      const [n1, n2, n3] = servers;
      const next = without(roster, n3);
      actor.kill(); // It would finish the change by itself.
      for (const server of [n1, n2]) {
        const { noted } = promises(server, 10);
        expect(accepts(server, next, { ballot: 10, noted })).toMatchObject({ kind: "accepted" });
      }
      const later = story.actor({ ...options, nodes: story.urls.slice(0, 3) });
      const { generation, members } = await later.fleet.reconfigure({ maxTtlMs: 150 }, patient);
      expect([generation, members.length]).toEqual([3, 2]);
    },
    four,
  );

  test(
    "M1 that comes too early closes none of the members, although one could accept it",
    async (story) => {
      const actor = story.actor({ ttlMs: 50_000, maxTtlMs: 60_000 });
      await actor.locker.ready();
      await actor.fleet.reconfigure({ maxTtlMs: 50_000 }, patient);
      story.nodes[0]?.command("HSET", "{sim}:node", "since", "0");
      await expect(actor.fleet.reconfigure({ maxTtlMs: 40_000 }, { waitMs: 0 })).rejects.toThrow(
        /leases of the generation before the present one may run/,
      );
      expect(await actor.node("n1").ask("grant", asking("a", 200))).toMatchObject({ kind: "granted" });
    },
    { nodes: 3 },
  );

  test(
    "M1 that one of three has accepted is not told as done, when the other two agree on another one",
    async (story) => {
      const gate = new Gate(scripts.accept, "n2", "n3");
      const slow = story.actor({ ...options, gate });
      await slow.locker.ready();
      const change = slow.fleet.reconfigure({ maxTtlMs: 300 }, patient);
      const [first] = story.nodes;
      await story.until(() => first !== undefined && isClosed(first.status), "one has accepted it");
      first?.partition();
      const quick = story.actor({ ...options, timeoutMs: 500 });
      await quick.fleet.settled();
      expect(await quick.fleet.reconfigure({ maxTtlMs: 400 }, patient)).toMatchObject({ generation: 2, maxTtlMs: 400 });
      first?.heal();
      gate.open();
      expect(await change).toMatchObject({ generation: 3, maxTtlMs: 300 });
      await story.until(() => story.nodes.every(({ status }) => status.roster?.maxTtlMs === 300), "all know it");
    },
    { nodes: 3 },
  );

  test(
    "M1 takes a former member in again, with the memory of its former days",
    async (story) => {
      const { actor } = await founded(story);
      const [first = "", , , fourth = ""] = story.urls;
      const admitted = (count: number) => story.until(() => actor.fleet.state().admitted.length === count, `${count} vote`);
      await actor.fleet.reconfigure({ add: fourth }, patient);
      await admitted(4);
      await actor.fleet.reconfigure({ remove: new URL(fourth).host }, patient);
      await actor.fleet.reconfigure({ replace: new URL(first).host, by: fourth }, patient);
      await admitted(3);
    },
    four,
  );

  test(
    "M1 leads a member that was away into the present generation when it is back",
    async (story) => {
      const { actor, servers } = await founded(story);
      const numberAt = () => generationNumber(servers[2].status.admission?.generation ?? "");
      servers[2].partition();
      await actor.fleet.reconfigure({ maxTtlMs: 300 }, patient);
      expect(numberAt()).toBe(1);
      servers[2].heal();
      await story.until(() => numberAt() === 2, "it is in the present generation");
      expect(actor.fleet.maxTtlMs).toBe(300);
    },
    four,
  );
});

// How long a change of members is tried, in time that a test moves.

const leases = (waitMs: number) => ({ why: "leases may run", waitMs, outwaits: true });
const others = { why: "too few nodes answer", waitMs: 50, outwaits: false };

/** Looks again and again, as a changer does; the time until it gives up, or until that is over. */
async function patience(clock: ManualClock, wait: ChangeWait, what: () => Parameters<ChangeWait["for"]>[0] | undefined): Promise<number> {
  const beganAt = clock.now;
  for (;;) {
    const wanted = what();
    if (wanted === undefined) return clock.now - beganAt;
    const waiting = wait.for(wanted);
    clock.advance(250);
    if (!(await waiting)) return clock.now - 250 - beganAt;
  }
}

test("a change without a limit outwaits leases however long they last, and gives up two minutes after them when nothing comes of it", async () => {
  const clock = new ManualClock();
  const wait = new ChangeWait(clock, {});
  const endsAt = clock.now + 3_600_000;
  expect(await patience(clock, wait, () => (clock.now < endsAt ? leases(endsAt - clock.now) : undefined))).toBe(3_600_000);
  const then = await patience(clock, wait, () => others);
  expect(then).toBeGreaterThan(119_000);
  expect(then).toBeLessThanOrEqual(120_250);
});

test("a change with a limit gives up at once where leases last longer", async () => {
  const clock = new ManualClock();
  const wait = new ChangeWait(clock, { waitMs: 1_000 });
  expect(await wait.for(leases(1_001))).toBe(false);
  expect(described(leases(1_000.5))).toBe("leases may run for 1001 ms more");
  expect(described(others)).toBe("too few nodes answer");
});

test("what is waited for is told once, and again when it is something else or takes longer", async () => {
  const clock = new ManualClock();
  const heard: ChangeWaiting[] = [];
  const wait = new ChangeWait(clock, { onWait: (waiting) => heard.push(waiting) });
  const look = async (what: Parameters<ChangeWait["for"]>[0]): Promise<void> => {
    const waiting = wait.for(what);
    clock.advance(250);
    await waiting;
  };
  for (const what of [others, others, leases(5_000), leases(4_750), leases(9_000), others]) await look(what);
  expect(heard).toEqual([
    { why: others.why },
    { why: "leases may run", waitMs: 5_000 },
    { why: "leases may run", waitMs: 9_000 },
    { why: others.why },
  ]);
});
