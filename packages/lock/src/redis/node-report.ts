// What each node says of itself and its server, for operators. Changes nothing.
import type { Clock } from "../platform/clock.js";
import type { Asked, NodeReport } from "../protocol/fleet.js";
import { readsDurable } from "./admission/steps.js";
import { causeOf } from "./causes.js";
import { memoryScript } from "./lua.generated.js";
import type { RedisNode } from "./node.js";
import { type NodeStatus, type ScriptCall, status } from "./node-record.js";
import { type Asking, askEach } from "./recovery.js";
import { GarbageReply } from "./requests.js";

/** The shortest way says most about the clock at its other end. */
const LOOKS = 3;

interface Look {
  readonly seen: NodeStatus;
  readonly latencyMs: number;
  readonly clockAheadMs: number;
  readonly clockUncertaintyMs: number;
}

export function reportOf(asking: Asking & { readonly clock: Clock }): Promise<readonly Asked<NodeReport>[]> {
  return askEach(asking.nodes, (node) => reportOn(asking, node));
}

async function reportOn({ keys, clock }: Asking & { readonly clock: Clock }, node: RedisNode): Promise<NodeReport> {
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
async function look({ keys, clock }: Pick<Asking, "keys"> & { readonly clock: Clock }, { connection }: RedisNode): Promise<Look> {
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
    source: memoryScript,
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
