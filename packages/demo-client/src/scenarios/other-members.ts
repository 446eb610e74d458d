// Half of the workers are configured with n1, n2, n3, the other half with n1, n2, n4: a replacement
// that reached only half of them, or a typo. Each list has a majority without the other's. Votes
// count for the members that the nodes have stored.
import { createLocker } from "@palisade/lock";
import type { RedisNode } from "@palisade/testkit";
import type { ActRun, Differing, Scenario } from "../engine/act-run.js";
import type { Worker } from "../engine/worker-handle.js";
import type { Resource } from "../worker/protocol.js";
import { codeOf } from "./late-write.js";
import { PrivateFleet } from "./private-fleet.js";

const actors = ["worker 1", "worker 2", "worker 3", "worker 4", "lock"];
/** No lease may run out here before it was looked at. */
const ttlMs = 4_000;
const nodes = ["n1", "n2", "n3"] as const;

/** The record as versions wrote it that stored no members: format 1. */
const WITHOUT_MEMBERS = `
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local admitted = redis.call('HGET', KEYS[1], 'admitted')
local epoch = string.match(admitted, ':(.*)$')
redis.call('HSET', KEYS[1], 'format', '1', 'size', '3', 'admitted', run .. string.sub(admitted, 41, 55) .. epoch)
redis.call('HDEL', KEYS[1], 'members', 'since', 'promised')`;

interface Pair {
  readonly job: Resource;
  readonly right: Worker;
  readonly wrong: Worker;
}

interface Prepared {
  readonly gateway: Differing;
  readonly pairs: readonly [Pair, Pair];
}

async function prepare(act: ActRun, areMembersStored: boolean): Promise<Prepared> {
  const fleet = await PrivateFleet.start(act);
  const { namespace } = act.environment;
  const [n1 = "", n2 = "", n3 = "", n4 = ""] = fleet.urls;
  const founder = createLocker({ nodes: [n1, n2, n3], namespace, ttlMs, maxTtlMs: ttlMs });
  await founder.ready();
  await founder.close();
  const recordOf = `{${namespace}}:node`;
  if (!areMembersStored) for (const name of nodes) await fleet.node(name).cli("EVAL", WITHOUT_MEMBERS, "1", recordOf);
  const gateway = await fleet.gateway(nodes.length);
  const network = await fleet.networkOf("worker 1 and worker 2");
  const config = { ...gateway, ttlMs, nodeTimeoutMs: ttlMs };
  const wrong = { ...config, redisUrls: [n1, n2, n4] };
  act.step("breaks", "lock", { text: "workers 3 and 4 are given another server than workers 1 and 2 as their third node" });
  const [three, four] = [await act.worker("worker 3", wrong), await act.worker("worker 4", wrong)];
  if (!areMembersStored) await votes(act, fleet.node("n4"), recordOf);
  for (const worker of [three, four]) {
    const earlier = act.resource(`jobs/of ${worker.name}`);
    await worker.acquires(earlier);
    await worker.releases(earlier);
  }
  if (!areMembersStored) await levels(act, fleet, recordOf);
  const right = { ...config, redisUrls: network.redisUrls.slice(0, nodes.length) };
  const [one, two] = [await act.worker("worker 1", right), await act.worker("worker 2", right)];
  await network.loses("n2");
  const [billing, backup] = [act.resource("jobs/billing"), act.resource("jobs/backup")];
  return {
    gateway,
    pairs: [
      { job: billing, right: one, wrong: three },
      { job: backup, right: two, wrong: four },
    ],
  };
}

/**
 * Until all nodes of the second list have issued the same tokens, higher ones than any worker names
 * for a new resource: 50 000 above what it has heard of, at most.
 */
async function levels(act: ActRun, fleet: PrivateFleet, record: string): Promise<void> {
  const servers = ["n1", "n2", "n4"].map((name) => fleet.node(name));
  const { namespace } = act.environment;
  const locker = createLocker({ nodes: servers.map(({ url }) => url), namespace, ttlMs, maxTtlMs: ttlMs });
  act.step("remarks", "lock", { text: "another process takes leases from the servers of workers 3 and 4" });
  const floors = () => Promise.all(servers.map((server) => server.cli("HGET", record, "floor")));
  for (let round = 1; round <= 3 || new Set(await floors()).size > 1; round++) {
    await (await locker.acquire(act.resource(`jobs/earlier ${round}`).name)).release();
    if (round < 3) await act.passes(1_000);
  }
  await locker.close();
}

/** Rebuilt from n1 and n2, as a member that has lost its memory. */
async function votes(act: ActRun, node: RedisNode, record: string): Promise<void> {
  while ((await node.cli("HGET", record, "admitted")) === null) await act.passes(20);
  act.step("remarks", "lock", { text: "that server votes, as a member that has lost its memory" });
}

async function withMembers(act: ActRun): Promise<void> {
  const { pairs } = await prepare(act, true);
  for (const { job, right, wrong } of pairs) {
    const older = await right.acquires(job);
    act.expect(`${wrong.name} is refused`, codeOf(await wrong.tries(job)), "LOCK_HELD");
    act.expect(`${right.name} is still the holder`, await right.believesToHold(job));
    await right.looksAt(job);
    await right.writes(job, { run: "Monday", by: right.name });
    await right.releases(job);
    const newer = await wrong.acquires(job);
    act.expect(`${wrong.name} is next, with a greater token`, newer.token > older.token);
    const { document } = await wrong.looksAt(job);
    act.expect(`it sees what ${right.name} has written`, document?.by, right.name);
  }
}

async function withoutMembers(act: ActRun): Promise<void> {
  const { gateway, pairs } = await prepare(act, false);
  for (const { job, right, wrong } of pairs) {
    const one = await right.acquires(job);
    const other = await wrong.tries(job);
    const both = [await right.believesToHold(job), other.ok && (await wrong.believesToHold(job))];
    act.expectDamage(`two hold ${job.shown}`, both, [true, true]);
    act.expectDamage("they have one token", other.ok && other.token === one.token);
    await right.looksAt(job);
    await wrong.looksAt(job);
    await right.writes(job, { run: "Monday", by: right.name });
    await wrong.writes(job, { run: "Monday", by: wrong.name });
    const stored = await act.stored(job, gateway);
    act.expectDamage(`the fence cannot tell them apart: ${right.name}'s update is lost`, stored?.by, wrong.name);
  }
}

export const otherMembers: Scenario = {
  name: "other-members",
  about: "half of the workers are configured with another node in the place of a member",
  acts: [
    { title: "with the members that the nodes have stored", actors, route: "gateway", play: withMembers },
    { title: "control: nodes that store no members", actors, route: "gateway", play: withoutMembers },
  ],
  proven:
    "Two lists of nodes can each have a majority. Votes count for the members that the nodes have stored, so one list does; without them two hold the lock, under one token.",
};
