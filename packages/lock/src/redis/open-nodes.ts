// Opens the nodes that were configured, and the fleet they form. The only file of redis/ that is
// imported from outside.

import { checkedAddresses, type NodeSource } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import type { NodeEvent } from "../protocol/events.js";
import type { Fleet, FleetRefusal, FleetState } from "../protocol/fleet.js";
import { Admission } from "./admission/admission.js";
import { BatchEncoder } from "./batch.js";
import { probeFleet } from "./doctor.js";
import { openLink } from "./ioredis.js";
import { keysOf } from "./keys.js";
import type { OpenLink } from "./link.js";
import { RedisNode } from "./node.js";
import { listResourcesOf, markNodes } from "./recovery.js";

export type { NodeSource } from "../options/node-source.js";
export type { Finding } from "../protocol/fleet.js";

export interface OpenNodesOptions {
  readonly nodes: readonly NodeSource[];
  /** Default: with ioredis. */
  readonly openLink?: OpenLink;
  readonly namespace: string;
  /** A node that has not answered by then is unreachable for this request. */
  readonly nodeTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /**
   * Stored with a new fleet; a fleet that stored less refuses us. undefined: whatever the fleet
   * allows.
   */
  readonly maxTtlMs: number | undefined;
  /** How long a counter outlives its last use. At least maxTtlMs. */
  readonly retentionMs: number;
  readonly clock: Clock;
  /** Must not throw: reporting never changes what a node does next. */
  readonly onEvent: (event: NodeEvent) => void;
}

const DAY_MS = 86_400_000;

/**
 * Connects to all nodes. TypeError or RangeError, before any I/O, if the sources cannot be nodes of
 * one fleet.
 */
export function openNodes(options: OpenNodesOptions): Fleet {
  const { namespace, clock, onEvent, maxTtlMs } = options;
  const addresses = checkedAddresses(options.nodes);
  const keys = keysOf(namespace);
  const encoder = new BatchEncoder(keys);
  let admission: Admission | undefined;
  const nodes = options.nodes.map(
    (source, index) =>
      new RedisNode({
        openLink,
        ...options,
        maxTtlMs: maxTtlMs ?? DAY_MS,
        source,
        keys,
        encoder,
        name: `n${index + 1}`,
        address: addresses[index] ?? "",
        connectionName: `palisade:${namespace}`,
        onNews: () => admission?.onNews(),
      }),
  );
  const expected = { size: nodes.length, maxTtlMs };
  // A field of the fleet, since every acquisition reads it.
  const onRefusal = (refusal: FleetRefusal | undefined): void => {
    fleet.refusal = refusal;
  };
  const ours = new Admission({ nodes, keys, clock, expected, lead: clock.secret(), onEvent, onRefusal });
  admission = ours;
  const fleet = {
    nodes,
    refusal: undefined as FleetRefusal | undefined,
    state: () => stateOf(nodes, ours),
    async settled() {
      await ours.settled;
      return stateOf(nodes, ours);
    },
    listResources: () => listResourcesOf({ nodes, keys }),
    mark: (name: string, atLeast: number) => markNodes({ nodes, keys }, name, atLeast),
    probe: () => probeFleet({ nodes, admission: ours, keys, clock }),
    async close() {
      ours.close();
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
  return fleet;
}

function stateOf(nodes: readonly RedisNode[], admission: Admission): FleetState {
  const up = nodes.filter(({ connection }) => connection.isUp);
  return {
    admitted: up.filter(({ isQuarantined }) => !isQuarantined).map(({ name }) => name),
    quarantined: up
      .filter(({ isQuarantined }) => isQuarantined)
      .map(({ name, readyInMs }) => ({
        node: name,
        ...(readyInMs === undefined ? {} : { readyInMs }),
        reason: admission.blockedBecause ?? (readyInMs ? "waiting until every lease it may have forgotten is over" : "being admitted"),
      })),
    unreachable: nodes
      .filter(({ connection }) => !connection.isUp)
      .map(({ name, connection }) => ({ node: name, cause: connection.cause })),
    refusal: admission.refusal,
    maxTtlMs: admission.maxTtlMs,
  };
}
