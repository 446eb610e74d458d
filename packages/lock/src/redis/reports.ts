// What operators and the recovery of a store ask of the nodes, outside of the algorithm: what each
// says of itself and its server, which resources have a counter, the leases it stores, and marks.
import type { Asked, NodeReport, StoredLease, StoredLeases } from "../protocol/fleet.js";
import { GarbageReply, type Keys, list, remainingOf, text } from "../protocol/verbs.js";
import { readsDurable } from "./admission/steps.js";
import type { ScriptCall } from "./calls.js";
import { causeOf } from "./connection.js";
import type { RedisFleet } from "./fleet.js";
import { scripts } from "./lua.generated.js";
import type { RedisNode } from "./node.js";
import { mark, type NodeStatus, status } from "./record.js";

/** The connection rejects after connectTimeoutMs, and at once where there is none. */
function askEach<Answer>(nodes: readonly RedisNode[], ask: (node: RedisNode) => Promise<Answer>): Promise<readonly Asked<Answer>[]> {
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

/** The shortest way says most about the clock at its other end. */
const LOOKS = 3;

/** What these of the members say. */
export function reportOf(fleet: RedisFleet, names: ReadonlySet<string>): Promise<readonly Asked<NodeReport>[]> {
  const asked = fleet.members.filter(({ name }) => names.has(name));
  return askEach(asked, async (node) => {
    let best = await look(fleet, node);
    for (let looks = 1; looks < LOOKS; looks++) {
      const next = await look(fleet, node);
      if (next.latencyMs < best.latencyMs) best = next;
    }
    const { seen, ...times } = best;
    const epoch = seen.admission?.epoch;
    return {
      ...times,
      version: seen.version,
      ...(epoch === undefined ? {} : { incarnation: epoch }),
      memory: await node.connection.run(memory),
      ...(await durabilityOf(node, seen)),
    };
  });
}

/** The server read its clock somewhere between the question and its answer. */
async function look({ clock }: RedisFleet, { connection }: RedisNode) {
  const [startAt, askedAt] = [clock.monotonicMs(), clock.wallMs()];
  const seen = await connection.run(status);
  const [latencyMs, answeredAt] = [clock.monotonicMs() - startAt, clock.wallMs()];
  // Both clocks are read in whole milliseconds.
  const [least, most] = [seen.timeMs - (answeredAt + 1), seen.timeMs + 1 - askedAt];
  return { seen, latencyMs, clockAheadMs: (least + most) / 2, clockUncertaintyMs: (most - least) / 2 };
}

const memory: ScriptCall<NodeReport["memory"]> = {
  source: scripts.memory,
  args: [],
  read(reply) {
    const [used, limit, evictionPolicy] = list(reply, 3).map(text);
    const limitBytes = Number(limit);
    return { usedBytes: Number(used), ...(limitBytes > 0 ? { limitBytes } : {}), evictionPolicy: text(evictionPolicy) };
  },
};

async function durabilityOf(node: RedisNode, seen: NodeStatus): Promise<Pick<NodeReport, "durable" | "hidden">> {
  try {
    // Of a server that became durable after its admission the next restart is a loss of memory.
    return { durable: (await readsDurable(node, seen)) && seen.wasDurable };
  } catch (error) {
    return { hidden: `its settings: ${causeOf(error)}` };
  }
}

const PATTERN_CHARACTERS = /[*?[\]\\^-]/g;

/** Matches exactly this text. */
export function patternOf(exact: string): string {
  return exact.replace(PATTERN_CHARACTERS, "\\$&");
}

/** What a SCAN has found in one step, and where it goes on: `0` at its end. */
interface Page<Item> {
  readonly cursor: string;
  readonly items: readonly Item[];
}

/** Read in small pages of a node's keys, so that no node is blocked. */
async function* pagesOf<Item>({ connection }: RedisNode, pageAt: (cursor: string) => ScriptCall<Page<Item>>): AsyncGenerator<Page<Item>> {
  let cursor = "0";
  do {
    const page = await connection.run(pageAt(cursor));
    cursor = page.cursor;
    yield page;
  } while (cursor !== "0");
}

export function resourcesPage(keys: Keys, from: string): ScriptCall<Page<string>> {
  const prefix = keys.token("");
  return {
    source: scripts.listResources,
    args: [from, patternOf(prefix), String(Buffer.byteLength(prefix))],
    read(reply) {
      if (reply === null) throw new Error("not admitted");
      if (!Array.isArray(reply)) throw new GarbageReply(reply);
      const [cursor = "0", ...items] = reply.map(text);
      return { cursor, items };
    },
  };
}

/** The names of the resources that have a counter. */
export function listResourcesOf({ members, keys }: RedisFleet): Promise<readonly Asked<readonly string[]>[]> {
  return askEach(members, async (node) => {
    const names: string[] = [];
    for await (const { items } of pagesOf(node, (cursor) => resourcesPage(keys, cursor))) names.push(...items);
    return names;
  });
}

const FIELDS = 6;
/** What a process keeps of one node's answer. */
const MAX_LEASES = 100_000;

function heldPage(keys: Keys, from: string, prefix: string): ScriptCall<Page<StoredLease>> {
  const start = keys.lock("");
  return {
    source: scripts.listHeld,
    args: [from, `${patternOf(start + prefix)}*`, start, keys.token("")],
    read(reply) {
      if (reply === null) throw new Error("not admitted");
      const fields = typeof reply === "string" ? (JSON.parse(reply) as unknown) : reply;
      if (!Array.isArray(fields) || fields.length % FIELDS !== 1) throw new GarbageReply(reply);
      const items: StoredLease[] = [];
      for (let at = 1; at < fields.length; at += FIELDS) items.push(storedLease(fields, at));
      return { cursor: text(fields[0]), items };
    },
  };
}

function storedLease(fields: readonly unknown[], at: number): StoredLease {
  const [resource, owner, holder, leftMs, ...counts] = fields.slice(at, at + FIELDS);
  const [token = Number.NaN, waiting = Number.NaN] = counts.map(Number);
  if (!Number.isSafeInteger(token) || !Number.isSafeInteger(waiting)) throw new GarbageReply(counts);
  return { resource: text(resource), owner: text(owner), holder: text(holder), remainingMs: remainingOf(leftMs), token, waiting };
}

/** The leases that each node stores. */
export function listHeldOf({ members, keys }: RedisFleet, prefix: string): Promise<readonly Asked<StoredLeases>[]> {
  return askEach(members, async (node) => {
    const leases = new Map<string, StoredLease>();
    let steps = 0;
    for await (const { cursor, items } of pagesOf(node, (from) => heldPage(keys, from, prefix))) {
      steps++;
      for (const lease of items) leases.set(lease.resource, lease);
      if (cursor !== "0" && leases.size >= MAX_LEASES) return { leases, steps, isWhole: false };
    }
    return { leases, steps, isWhole: true };
  });
}

const MOVED = "answered while members were being admitted, which does not count";

/**
 * Raises a mark, which is a number that only rises, on each node. An answer counts only in the
 * epoch that was noted before, like a grant: a mark that is stored after another node was rebuilt
 * from this one is not known there.
 */
export function markNodes({ members }: RedisFleet, name: string, atLeast: number): Promise<readonly Asked<number>[]> {
  return askEach(members, async (node) => {
    const noted = node.epoch();
    const { admitted, marks } = await node.connection.run(mark(new Map([[name, atLeast]])));
    node.noteAdmission(admitted);
    if (noted === undefined || node.epoch() !== noted) throw new Error(admitted === "" ? "not admitted" : MOVED);
    return marks.get(name) ?? 0;
  });
}
