// What operators and the recovery of a store ask of the nodes, outside of the algorithm: what each
// says of itself and its server, which resources have a counter, marks, and the leases it stores.
import type { Asked, NodeReport, StoredLease, StoredLeases } from "../protocol/fleet.js";
import { GarbageReply, type Keys, remainingOf } from "../protocol/verbs.js";
import { readsDurable } from "./admission/steps.js";
import type { ScriptCall } from "./calls.js";
import { causeOf } from "./connection.js";
import type { RedisFleet } from "./fleet.js";
import { scripts } from "./lua.generated.js";
import type { RedisNode } from "./node.js";
import { mark, type NodeStatus, status } from "./record.js";

/** The shortest way says most about the clock at its other end. */
const LOOKS = 3;

interface Look {
  readonly seen: NodeStatus;
  readonly latencyMs: number;
  readonly clockAheadMs: number;
  readonly clockUncertaintyMs: number;
}

/** What these of the members say. */
export function reportOf(fleet: RedisFleet, names: ReadonlySet<string>): Promise<readonly Asked<NodeReport>[]> {
  const asked = fleet.members.filter(({ name }) => names.has(name));
  return askEach(asked, (node) => reportOn(fleet, node));
}

async function reportOn({ keys, clock }: RedisFleet, node: RedisNode): Promise<NodeReport> {
  let best = await look({ keys, clock }, node);
  for (let looks = 1; looks < LOOKS; looks++) {
    const next = await look({ keys, clock }, node);
    if (next.latencyMs < best.latencyMs) best = next;
  }
  const { seen, ...times } = best;
  const epoch = seen.admission?.epoch;
  const memory = await node.connection.run(memoryCall(keys.node));
  return {
    ...times,
    version: seen.version,
    ...(epoch === undefined ? {} : { incarnation: epoch }),
    memory,
    ...(await durabilityOf(node, seen)),
  };
}

/** The server read its clock somewhere between the question and its answer. */
async function look({ keys, clock }: Pick<RedisFleet, "keys" | "clock">, { connection }: RedisNode): Promise<Look> {
  const [startAt, askedAt] = [clock.monotonicMs(), clock.wallMs()];
  const seen = await connection.run(status(keys));
  const [latencyMs, answeredAt] = [clock.monotonicMs() - startAt, clock.wallMs()];
  // Both clocks are read in whole milliseconds.
  const [least, most] = [seen.timeMs - (answeredAt + 1), seen.timeMs + 1 - askedAt];
  return { seen, latencyMs, clockAheadMs: (least + most) / 2, clockUncertaintyMs: (most - least) / 2 };
}

async function durabilityOf(node: RedisNode, seen: NodeStatus): Promise<Pick<NodeReport, "durable" | "hidden">> {
  try {
    // Of a server that became durable after its admission the next restart is a loss of memory.
    return { durable: (await readsDurable(node, seen)) && seen.wasDurable };
  } catch (error) {
    return { hidden: `its settings: ${causeOf(error)}` };
  }
}

function memoryCall(key: string): ScriptCall<NonNullable<NodeReport["memory"]>> {
  return {
    source: scripts.memory,
    keys: [key],
    args: [],
    read(reply) {
      if (!Array.isArray(reply) || reply.length !== 3) throw new GarbageReply(reply);
      const [used, limit, evictionPolicy] = reply as readonly unknown[];
      if (typeof used !== "string" || typeof limit !== "string" || typeof evictionPolicy !== "string") throw new GarbageReply(reply);
      const limitBytes = Number(limit);
      return { usedBytes: Number(used), ...(limitBytes > 0 ? { limitBytes } : {}), evictionPolicy };
    },
  };
}

interface Page {
  readonly cursor: string;
  readonly names: readonly string[];
}

const MOVED = "answered while members were being admitted, which does not count";
const PATTERN_CHARACTERS = /[*?[\]\\^-]/g;

/** Matches exactly this text. */
export function patternOf(text: string): string {
  return text.replace(PATTERN_CHARACTERS, "\\$&");
}

export function resourcesPage(keys: Keys, cursor: string): ScriptCall<Page> {
  const prefix = keys.token("");
  return {
    source: scripts.listResources,
    keys: [keys.node],
    args: [cursor, patternOf(prefix), String(Buffer.byteLength(prefix))],
    read(reply) {
      if (reply === null) throw new Error("not admitted");
      if (!Array.isArray(reply) || !reply.every((word) => typeof word === "string")) throw new GarbageReply(reply);
      const [next = "0", ...names] = reply as string[];
      return { cursor: next, names };
    },
  };
}

/** What is asked of all members. */
type Asking = Pick<RedisFleet, "members" | "keys">;

/** The names of the resources that have a counter. */
export function listResourcesOf({ members, keys }: Asking): Promise<readonly Asked<readonly string[]>[]> {
  return askEach(members, async (node) => {
    const names: string[] = [];
    let cursor = "0";
    do {
      const page = await node.connection.run(resourcesPage(keys, cursor));
      names.push(...page.names);
      cursor = page.cursor;
    } while (cursor !== "0");
    return names;
  });
}

/**
 * Raises a mark, which is a number that only rises, on each node. An answer counts only in the
 * epoch that was noted before, like a grant: a mark that is stored after another node was rebuilt
 * from this one is not known there.
 */
export function markNodes({ members, keys }: Asking, name: string, atLeast: number): Promise<readonly Asked<number>[]> {
  return askEach(members, async (node) => {
    const noted = node.epoch();
    const { admitted, marks } = await node.connection.run(mark(keys, new Map([[name, atLeast]])));
    node.noteRecord(admitted);
    if (noted === undefined || node.epoch() !== noted) throw new Error(admitted === "" ? "not admitted" : MOVED);
    return marks.get(name) ?? 0;
  });
}

/** The connection rejects after connectTimeoutMs, and at once where there is none. */
export function askEach<Answer>(nodes: readonly RedisNode[], ask: (node: RedisNode) => Promise<Answer>): Promise<readonly Asked<Answer>[]> {
  return Promise.all(
    nodes.map(async (node): Promise<Asked<Answer>> => {
      try {
        if (!node.connection.isUp) return { kind: "unreachable", node: node.name, cause: node.connection.cause };
        return { kind: "answered", node: node.name, answer: await ask(node) };
      } catch (error) {
        return { kind: "unreachable", node: node.name, cause: causeOf(error) };
      }
    }),
  );
}

interface HeldPage {
  readonly cursor: string;
  readonly leases: readonly StoredLease[];
}

const FIELDS = 5;
/** What a process keeps of one node's answer. */
const MAX_LEASES = 100_000;

function heldPage(keys: Keys, cursor: string, prefix: string): ScriptCall<HeldPage> {
  const start = keys.lock("");
  return {
    source: scripts.listHeld,
    keys: [keys.node],
    args: [cursor, `${patternOf(start + prefix)}*`, start, keys.token("")],
    read(reply) {
      if (reply === null) throw new Error("not admitted");
      const fields = typeof reply === "string" ? (JSON.parse(reply) as unknown) : reply;
      if (!Array.isArray(fields) || fields.length % FIELDS !== 1 || typeof fields[0] !== "string") throw new GarbageReply(reply);
      const leases: StoredLease[] = [];
      for (let at = 1; at < fields.length; at += FIELDS) leases.push(storedLease(fields, at));
      return { cursor: fields[0], leases };
    },
  };
}

function storedLease(fields: readonly unknown[], at: number): StoredLease {
  const resource = fields[at];
  const owner = fields[at + 1];
  const holder = fields[at + 2];
  const token = Number(fields[at + 4]);
  if (typeof resource !== "string" || typeof owner !== "string" || typeof holder !== "string" || !Number.isSafeInteger(token))
    throw new GarbageReply(fields.slice(at, at + FIELDS));
  return { resource, owner, holder, remainingMs: remainingOf(fields[at + 3]), token };
}

/** The leases that each node stores, read in small pages of its keys, so that no node is blocked. */
export function listHeldOf({ members, keys }: Asking, prefix: string): Promise<readonly Asked<StoredLeases>[]> {
  return askEach(members, async (node) => {
    const leases = new Map<string, StoredLease>();
    let cursor = "0";
    let steps = 0;
    do {
      steps++;
      const page = await node.connection.run(heldPage(keys, cursor, prefix));
      for (const lease of page.leases) leases.set(lease.resource, lease);
      cursor = page.cursor;
    } while (cursor !== "0" && leases.size < MAX_LEASES);
    return { leases, steps, isWhole: cursor === "0" };
  });
}
