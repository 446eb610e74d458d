// How the next generation of members is agreed upon: who may accept what, when, and what a changer
// that stops half-way leaves behind.
import type { RedisNode as TestNode } from "@palisade/testkit";
import { describe, expect, type StartFleet, test } from "@palisade/testkit/vitest";
import { onTestFinished } from "vitest";
import { keysOf } from "../../../src/protocol/verbs.js";
import { agree } from "../../../src/redis/admission/members.js";
import { readStatuses } from "../../../src/redis/admission/steps.js";
import type { ScriptCall } from "../../../src/redis/calls.js";
import { RedisFleet } from "../../../src/redis/fleet.js";
import { scripts } from "../../../src/redis/lua.generated.js";
import {
  accept,
  changed,
  enter,
  generationNumber,
  generationOf,
  isAdmitted,
  isClosed,
  type NodeStatus,
  promise,
  type Roster,
  readAdmissionRecord,
  status,
} from "../../../src/redis/record.js";
import { asking, heldBack, type Opened, opened, patience } from "./opened-fleet.js";

const namespace = "change";
const keys = keysOf(namespace);
const maxTtlMs = 200;
const patient = { timeout: 60_000 };
const soon = { timeout: 30_000 };

async function run<Reply>(server: TestNode | undefined, call: ScriptCall<Reply>): Promise<Reply> {
  return call.read(await server?.cli("EVAL", call.source, "2", keys.node, keys.marks, ...call.args));
}

const statusOf = (server: TestNode | undefined): Promise<NodeStatus> => run(server, status);

interface Story extends AsyncDisposable {
  readonly servers: readonly TestNode[];
  readonly urls: readonly string[];
  readonly roster: Roster;
  readonly lock: Opened;
}

/** Three members, and a fourth server. */
async function founded(fleet: StartFleet, options: { readonly connectTimeoutMs?: number } = {}): Promise<Story> {
  const { nodes: servers, urls } = await fleet({ nodes: 4 });
  const lock = await opened(urls.slice(0, 3), { namespace, maxTtlMs, ...options });
  const { roster } = await statusOf(servers[0]);
  if (roster === undefined) throw new Error("a new fleet has a roster");
  return { servers, urls, roster, lock, [Symbol.asyncDispose]: () => lock.fleet.close() };
}

/** The next generation, without the member at this server. */
async function without(it: Story, server: TestNode | undefined): Promise<Roster> {
  return changed(it.roster, { remove: (await statusOf(server)).id ?? "" });
}

async function promises(server: TestNode | undefined, ballot: number) {
  const noted = (await statusOf(server)).admitted;
  return { noted, answer: await run(server, promise(noted, ballot)) };
}

function accepts(server: TestNode | undefined, roster: Roster, given: { ballot: number; noted: string; openForMs?: number }) {
  return run(server, accept({ openForMs: 0, epoch: "i", roster, ...given }));
}

describe("a member", () => {
  test("M1 accepts only what it has promised last, and tells the next changer what it accepted", async ({ fleet }) => {
    await using it = await founded(fleet);
    const [n1, n2, n3] = it.servers;
    const [mine, yours] = [await without(it, n2), await without(it, n3)];
    const { noted } = await promises(n1, 10);
    expect((await promises(n1, 10)).answer).toEqual({ kind: "refused", promised: 10 });
    await promises(n1, 20);
    expect(await accepts(n1, mine, { ballot: 10, noted })).toEqual({ kind: "refused" });
    expect(await accepts(n1, yours, { ballot: 20, noted })).toMatchObject({ kind: "accepted" });
    expect((await promises(n1, 30)).answer).toMatchObject({ kind: "promised", accepted: 20, roster: yours });
  });

  test("M1 T1 that has accepted does not vote, and its floor stands", async ({ fleet }) => {
    await using it = await founded(fleet);
    const [n1, n2] = it.servers;
    const { noted } = await promises(n1, 10);
    const before = await it.lock.node("n1").ask("grant", asking("a"));
    expect(before).toMatchObject({ kind: "granted" });
    const accepted = await accepts(n1, await without(it, n2), { ballot: 10, noted });
    expect(accepted.kind === "accepted" && before.kind === "granted" && accepted.floor >= before.token).toBe(true);
    expect(isClosed(await statusOf(n1))).toBe(true);
    expect(await it.lock.node("n1").ask("grant", asking("b"))).toMatchObject({ kind: "quarantined" });
  });

  test(
    "M1 that was rebuilt, or visited for that, has promised and will accept nothing of what a changer began before",
    patient,
    async ({ fleet }) => {
      await using it = await founded(fleet);
      const [, n2, n3] = it.servers;
      const begun = await Promise.all(it.servers.slice(0, 3).map((server) => promises(server, 10)));
      const later = it.lock.fromNow();
      await n3?.cli("FLUSHALL");
      await it.lock.node("n3").ask("inspect", { resources: ["a"] });
      expect(await later.heard("admitted", "n3")).toMatchObject({ way: "rebuilt" });
      const next = await without(it, n2);
      for (const [i, { noted, answer }] of begun.entries()) {
        expect(answer).toMatchObject({ kind: "promised" });
        expect(await accepts(it.servers[i], next, { ballot: 10, noted })).toEqual({ kind: "refused" });
        expect(await run(it.servers[i], promise(noted, 20))).toMatchObject({ kind: "refused" });
      }
    },
  );

  test("L2 accepts nothing while leases of the generation before its own may run", async ({ fleet }) => {
    await using it = await founded(fleet);
    const [n1, n2] = it.servers;
    const { noted } = await promises(n1, 10);
    const next = await without(it, n2);
    await accepts(n1, next, { ballot: 10, noted });
    await it.lock.fleet.close();
    expect(await run(n1, enter({ roster: next, floor: 0, epoch: "i", sinceGeneration: 1 }))).toBe(true);
    const again = (await promises(n1, 10)).noted;
    const third = changed(next, { maxTtlMs: 7 });
    expect(await accepts(n1, third, { ballot: 10, noted: again, openForMs: 60_000 })).toMatchObject({ kind: "too early" });
    expect(await accepts(n1, third, { ballot: 10, noted: again })).toMatchObject({ kind: "accepted" });
  });

  test("T1 enters a generation above the highest floor that was told for it, and none that it has been in or came to later", async ({
    fleet,
  }) => {
    await using it = await founded(fleet);
    const [n1, n2] = it.servers;
    const next = await without(it, n2);
    const { floor = 0 } = await statusOf(n1);
    const entering = { roster: next, floor: floor + 1_000, epoch: "i" };
    expect(await run(n1, enter({ ...entering, sinceGeneration: 2 }))).toBe(false);
    expect(await run(n1, enter({ ...entering, sinceGeneration: 1 }))).toBe(true);
    expect(await run(n1, enter({ ...entering, sinceGeneration: 1 }))).toBe(false);
    const after = await statusOf(n1);
    expect(readAdmissionRecord(after.admitted)).toMatchObject({ generation: generationOf(next), counterFloor: floor + 1_000 });
    expect(await it.lock.node("n1").ask("grant", asking("a"))).toMatchObject({
      kind: "unreachable",
      cause: "GENERATION: it votes in generation 2, and was asked in generation 1",
    });
  });
});

describe("a change", () => {
  test("M1 that was left half-way is finished by any locker, if a member has accepted it", patient, async ({ fleet }) => {
    await using it = await founded(fleet);
    const [n1, n2, n3] = it.servers;
    const next = await without(it, n3);
    const { noted } = await promises(n1, 10);
    await accepts(n1, next, { ballot: 10, noted });
    // Any question tells the locker that n1 is closed.
    await it.lock.node("n1").ask("inspect", { resources: ["a"] });
    await expect.poll(() => it.lock.fleet.members()?.generation, soon).toBe(2);
    expect(it.lock.fleet.nodes).toHaveLength(2);
    for (const server of [n1, n2]) await expect.poll(async () => isAdmitted(await statusOf(server)), soon).toBe(true);
  });

  test("M1 that a majority has accepted is carried on, whatever a changer wishes that comes after it", patient, async ({ fleet }) => {
    await using it = await founded(fleet);
    const [n1, n2, n3] = it.servers;
    const next = await without(it, n3);
    await it.lock.fleet.close(); // It would finish the change by itself.
    for (const server of [n1, n2]) {
      const { noted } = await promises(server, 10);
      expect(await accepts(server, next, { ballot: 10, noted })).toMatchObject({ kind: "accepted" });
    }
    const later = new RedisFleet({ ...patience, nodes: it.urls.slice(0, 3), namespace, maxTtlMs });
    onTestFinished(() => later.close());
    await Promise.all(later.configured.map((node) => node.met()));
    const statuses = await readStatuses(later);
    later.look();
    const outcome = await agree(later, statuses, (present) => changed(present, { maxTtlMs: 400 }));
    expect(outcome).toEqual({ kind: "agreed", roster: { ...next, untold: [] } });
  });

  test("M1 that was left half-way is done by asking again, and taken back by asking for the contrary", patient, async ({ fleet }) => {
    await using it = await founded(fleet);
    const [n1, , n3] = it.servers;
    const [, , third = "", fourth = ""] = it.urls;
    const { noted } = await promises(n1, 10);
    await accepts(n1, await without(it, n3), { ballot: 10, noted });
    const address = new URL(third).host;
    const removed = await it.lock.fleet.reconfigure({ remove: address }, { waitMs: 30_000 });
    expect(removed).toMatchObject({ generation: 2, members: expect.not.arrayContaining([address]) });
    // Whoever asks it is led to them.
    expect(await statusOf(n3)).toMatchObject({ roster: { generation: 2 }, admission: { standing: "closed" } });
    const back = await it.lock.fleet.reconfigure({ add: third }, { waitMs: 30_000 });
    expect(back).toMatchObject({ generation: 3, members: expect.arrayContaining([address]) });
    const replaced = await it.lock.fleet.reconfigure({ replace: address, by: fourth }, { waitMs: 30_000 });
    expect(replaced.members).toContain(new URL(fourth).host);
    await expect.poll(() => it.lock.fleet.state().admitted.length, soon).toBe(3);
  });

  test("M1 that comes too early closes none of the members, although one could accept it", patient, async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    await using lock = await opened(urls, { namespace, maxTtlMs: 60_000 });
    await lock.fleet.reconfigure({ maxTtlMs: 50_000 }, { waitMs: 30_000 });
    await nodes[0]?.cli("HSET", keys.node, "since", "0");
    await expect(lock.fleet.reconfigure({ maxTtlMs: 40_000 }, { waitMs: 0 })).rejects.toThrow(
      /leases of the generation before the present one may run/,
    );
    expect(isClosed(await statusOf(nodes[0]))).toBe(false);
    expect(await lock.node("n1").ask("grant", asking("a"))).toMatchObject({ kind: "granted" });
  });

  test("M1 that one of three has accepted is not told as done, when the other two agree on another one", patient, async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 3 });
    const gate = heldBack(scripts.accept, 2, 3);
    await using slow = await opened(urls, { namespace, maxTtlMs, openLink: gate.openLink });
    const change = slow.fleet.reconfigure({ maxTtlMs: 300 }, { waitMs: 30_000 });
    await expect.poll(async () => isClosed(await statusOf(nodes[0])), soon).toBe(true);
    await nodes[0]?.partition();
    await using quick = await opened(urls, { namespace, maxTtlMs, nodeTimeoutMs: 500, connectTimeoutMs: 500 });
    expect(await quick.fleet.reconfigure({ maxTtlMs: 400 }, { waitMs: 30_000 })).toMatchObject({ generation: 2, maxTtlMs: 400 });
    await nodes[0]?.heal();
    gate.open();
    expect(await change).toMatchObject({ generation: 3, maxTtlMs: 300 });
    for (const node of nodes) await expect.poll(async () => (await statusOf(node)).roster?.maxTtlMs, soon).toBe(300);
  });

  test("M1 takes a former member in again, with the memory of its former days", patient, async ({ fleet }) => {
    await using it = await founded(fleet);
    const [first = "", , , fourth = ""] = it.urls;
    const address = new URL(fourth).host;
    const admitted = () => it.lock.fleet.state().admitted.length;
    await it.lock.fleet.reconfigure({ add: fourth }, { waitMs: 30_000 });
    await expect.poll(admitted, soon).toBe(4);
    await it.lock.fleet.reconfigure({ remove: address }, { waitMs: 30_000 });
    await it.lock.fleet.reconfigure({ replace: new URL(first).host, by: fourth }, { waitMs: 30_000 });
    await expect.poll(admitted, soon).toBe(3);
  });

  test("M1 leads a member that was away into the present generation when it is back", patient, async ({ fleet }) => {
    // A connection that was begun behind the cut is given up after so long.
    await using it = await founded(fleet, { connectTimeoutMs: 500 });
    const [, , n3] = it.servers;
    const numberAt = async () => generationNumber((await statusOf(n3)).admission?.generation ?? "");
    await n3?.partition();
    await it.lock.fleet.reconfigure({ maxTtlMs: 300 }, { waitMs: 30_000 });
    expect(await numberAt()).toBe(1);
    await n3?.heal();
    await expect.poll(numberAt, soon).toBe(2);
    expect(it.lock.fleet.maxTtlMs).toBe(300);
  });
});

test(
  "a fleet is founded without a member that is down on the operator's word, and takes it in when it comes",
  patient,
  async ({ fleet }) => {
    const { nodes: servers, urls } = await fleet({ nodes: 3 });
    await servers[2]?.kill();
    await using lock = await opened(urls, { namespace, maxTtlMs });
    expect(lock.fleet.state().quarantined[0]?.reason).toMatch(
      /^a new fleet is founded only when all 3 nodes can be reached; n3 at .* is not/,
    );
    const { members } = await lock.fleet.foundWithout(["n3"]);
    expect(members).toHaveLength(3);
    await expect.poll(() => lock.fleet.state().admitted, soon).toEqual(["n1", "n2"]);
    await servers[2]?.restart();
    await expect.poll(() => lock.fleet.state().admitted, soon).toEqual(["n1", "n2", "n3"]);
  },
);
