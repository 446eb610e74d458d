// Opens the nodes that were configured, and the fleet they form. Nothing else of redis/ is imported
// from outside.
import { addressOf } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import type { NodeEvent } from "../protocol/events.js";
import type { FleetRefusal, FleetState, MemberChange, OpenFleet, ReconfigureOptions } from "../protocol/fleet.js";
import type { LockNode, ServerSource } from "../protocol/node.js";
import { Admission } from "./admission/admission.js";
import { foundWithout, membersOf, reconfigure } from "./admission/members.js";
import type { AdmissionSettings } from "./admission/steps.js";
import { probeFleet } from "./doctor.js";
import { FleetNodes } from "./fleet-nodes.js";
import { type OpenLink, openLink } from "./link.js";
import { RedisNode, type RedisNodeSettings } from "./node.js";
import { BatchEncoder } from "./pipeline.js";
import { listHeldOf, listResourcesOf, markNodes, reportOf } from "./reports.js";
import { keysOf } from "./script-call.js";

export interface OpenNodesOptions {
  readonly nodes: readonly ServerSource[];
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

/** Connects to all nodes. */
export function openNodes(options: OpenNodesOptions): OpenFleet {
  const { namespace, clock, onEvent, maxTtlMs } = options;
  const keys = keysOf(namespace, clock.secret());
  let admission: Admission | undefined;
  let listener = (): void => {};
  // What every request reads is kept in fields.
  const votingIn = { generation: "" };
  const nodes = new FleetNodes({
    sources: options.nodes,
    votingIn,
    clock,
    open: opener(options, { keys, votingIn, onNews: () => admission?.onNews() }),
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
    maxTtlMs,
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
    ...forOperators(settings, ours),
    async close() {
      ours.close();
      await nodes.close();
    },
  };
  return fleet;
}

function forOperators(settings: AdmissionSettings, admission: Admission) {
  const { fleet, keys, clock } = settings;
  return {
    listResources: () => listResourcesOf({ nodes: fleet.members, keys }),
    listHeld: (prefix: string) => listHeldOf({ nodes: fleet.members, keys }, prefix),
    report: (nodes: ReadonlySet<string>) => reportOf({ nodes: fleet.members.filter(({ name }) => nodes.has(name)), keys, clock }),
    mark: (name: string, atLeast: number) => markNodes({ nodes: fleet.members, keys }, name, atLeast),
    members: () => (fleet.roster === undefined ? undefined : membersOf(fleet.roster)),
    reconfigure: (change: MemberChange<ServerSource>, limits: ReconfigureOptions) => reconfigure(settings, { change, limits }),
    foundWithout: (absent: readonly string[]) => foundWithout(settings, absent),
    probe: () => probeFleet({ fleet, admission, keys, clock }),
  };
}

/** Opens single nodes of one fleet. */
function opener(
  options: OpenNodesOptions,
  shared: Pick<RedisNodeSettings, "keys" | "votingIn" | "onNews">,
): (source: ServerSource, name: string) => RedisNode {
  const encoder = new BatchEncoder(shared.keys);
  return (source, name) =>
    new RedisNode({
      openLink,
      ...options,
      ...shared,
      maxTtlMs: options.maxTtlMs ?? DAY_MS,
      source,
      encoder,
      name,
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
