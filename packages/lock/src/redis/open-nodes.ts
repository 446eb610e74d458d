// Opens the nodes that were configured, and the fleet they form. Nothing else of redis/ is imported
// from outside, but how long leases are outwaited (roster.ts).

import { addressOf, checkedAddresses, type NodeSource } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import type { ChangeLimits } from "../protocol/change-limits.js";
import type { NodeEvent } from "../protocol/events.js";
import type { Fleet, FleetRefusal, FleetState, MemberChange } from "../protocol/fleet.js";
import type { LockNode } from "../protocol/node.js";
import { Admission } from "./admission/admission.js";
import type { ConfiguredFleets } from "./admission/fleet-check.js";
import { listingOf, type Meetings } from "./admission/fleet-list.js";
import { foundWithout, membersOf, reconfigure } from "./admission/reconfigure.js";
import type { AdmissionSettings } from "./admission/steps.js";
import { BatchEncoder } from "./batch.js";
import { probeFleet } from "./doctor.js";
import { FleetNodes } from "./fleet-nodes.js";
import { openLink } from "./ioredis.js";
import { keysOf } from "./keys.js";
import type { OpenLink } from "./link.js";
import { listHeldOf } from "./list-held.js";
import { RedisNode, type RedisNodeSettings } from "./node.js";
import { reportOf } from "./node-report.js";
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
  /** Where this is one of several fleets; its nodes are named west/n1 and so on. */
  readonly among?: ConfiguredFleets | undefined;
  /** Of the records of a fleet that is founded here. Default: "2"; tests have older ones. */
  readonly format?: "1" | "2";
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
  const expected = { size: checkedAddresses(options.nodes).length, maxTtlMs, fleets: options.among };
  const keys = keysOf(namespace, clock.secret());
  let admission: Admission | undefined;
  let listener = (): void => {};
  // What every request reads is kept in fields.
  const votingIn = { generation: "" };
  const met: Meetings = { times: 0, last: new Map() };
  const nodes = new FleetNodes({
    sources: options.nodes,
    votingIn,
    clock,
    open: opener(options, { keys, votingIn, met, onNews: () => admission?.onNews() }),
  });
  const onRefusal = (refusal: FleetRefusal | undefined): void => {
    fleet.refusal = refusal;
  };
  const onMembers = (): void => {
    fleet.nodes = nodes.members;
    listener();
    // A newcomer has to be admitted, and may have said long ago that it is not.
    admission?.onNews();
  };
  const onMaxTtl = (longestMs: number | undefined): void => {
    fleet.maxTtlMs = longestMs;
    listener();
  };
  const settings = {
    fleet: nodes,
    keys,
    clock,
    expected,
    format: options.format ?? "2",
    onEvent,
    onRefusal,
    onMembers,
    onMaxTtl,
  };
  const ours = new Admission(settings);
  admission = ours;
  const fleet = {
    nodes: nodes.members as readonly LockNode[],
    refusal: undefined as FleetRefusal | undefined,
    maxTtlMs: undefined as number | undefined,
    onChange(given: () => void) {
      listener = given;
    },
    state: () => stateOf(nodes, ours),
    settled: () => ours.settled.then(() => stateOf(nodes, ours)),
    listing: listingOf(settings, { met, settled: ours.settled, onNews: () => ours.onNews() }),
    ...forOperators(settings, ours),
    async close() {
      ours.close();
      await nodes.close();
    },
  };
  return fleet;
}

/** Where it is one of several. */
export function nameOf(among: ConfiguredFleets | undefined): string | undefined {
  return among === undefined || among.names.length === 1 ? undefined : among.name;
}

function forOperators(settings: AdmissionSettings, admission: Admission) {
  const { fleet, keys, clock } = settings;
  return {
    name: nameOf(settings.expected.fleets),
    listResources: () => listResourcesOf({ nodes: fleet.members, keys }),
    listHeld: (prefix: string) => listHeldOf({ nodes: fleet.members, keys }, prefix),
    report: (nodes: ReadonlySet<string>) => reportOf({ nodes: fleet.members.filter(({ name }) => nodes.has(name)), keys, clock }),
    mark: (name: string, atLeast: number) => markNodes({ nodes: fleet.members, keys }, name, atLeast),
    members: () => (fleet.roster === undefined ? undefined : membersOf(fleet.roster)),
    reconfigure: (change: MemberChange, limits: ChangeLimits) => reconfigure(settings, { change, limits }),
    foundWithout: (absent: readonly string[]) => foundWithout(settings, absent),
    probe: () => probeFleet({ fleet, admission, keys, clock }),
  };
}

/** Opens single nodes of one fleet. */
function opener(
  options: OpenNodesOptions,
  { met, ...shared }: Pick<RedisNodeSettings, "keys" | "votingIn" | "onNews"> & { readonly met: Meetings },
): (source: NodeSource, name: string) => RedisNode {
  const encoder = new BatchEncoder(shared.keys);
  const prefix = options.among === undefined ? "" : `${options.among.name}/`;
  const onEvent = (event: NodeEvent): void => {
    if (event.kind === "connected") met.last.set(event.node, ++met.times);
    options.onEvent(event);
  };
  return (source, name) =>
    new RedisNode({
      openLink,
      ...options,
      ...shared,
      onEvent,
      maxTtlMs: options.maxTtlMs ?? DAY_MS,
      source,
      encoder,
      name: `${prefix}${name}`,
      address: addressOf(source),
      connectionName: `palisade:${options.namespace}`,
    });
}

function stateOf({ members }: FleetNodes, admission: Admission): FleetState {
  const up = members.filter(({ connection }) => connection.isUp);
  return {
    admitted: up.filter(({ isVoter }) => isVoter).map(({ name }) => name),
    quarantined: up
      .filter(({ isVoter }) => !isVoter)
      .map(({ name, readyInMs, exclusion }) => ({
        node: name,
        ...(readyInMs === undefined ? {} : { readyInMs }),
        reason:
          exclusion ??
          admission.blockedBecause ??
          (readyInMs ? "waiting until every lease it may have forgotten is over" : "being admitted"),
      })),
    unreachable: members
      .filter(({ connection }) => !connection.isUp)
      .map(({ name, connection }) => ({ node: name, cause: connection.cause })),
    refusal: admission.refusal,
    maxTtlMs: admission.maxTtlMs,
  };
}
