// Opens a locker: over one fleet, or over several, as the options name nodes or fleets.
import { FleetsLocker } from "./fleets/fleets-locker.js";
import { QuorumLocker } from "./locker.js";
import { readFleets } from "./options/fleets.js";
import { type LockerOptions, type Policy, readPolicy } from "./options/policy.js";
import { systemClock } from "./platform/clock.js";
import { channels, inFleet, type NodeEvent } from "./protocol/events.js";
import type { Locker } from "./protocol/locker.js";
import { nameOf, type OpenNodesOptions, openNodes } from "./redis/open-nodes.js";

/**
 * A locker over N independent Redis masters, or over several fleets of them. Begins to connect at
 * once; nothing needs to be awaited before the first call. Throws TypeError or RangeError for
 * invalid options, before any I/O.
 */
export function createLocker(options: LockerOptions): Locker {
  const fleets = readFleets(options);
  const clock = systemClock();
  const settings = (policy: Policy, opening: Pick<OpenNodesOptions, "nodes" | "among">): OpenNodesOptions => {
    const { namespace, nodeTimeoutMs, connectTimeoutMs, maxTtlMs, retentionMs } = policy;
    const named = inFleet(nameOf(opening.among));
    const onEvent = (event: NodeEvent): void => published(event, named);
    return { ...opening, namespace, nodeTimeoutMs, connectTimeoutMs, maxTtlMs, retentionMs, clock, onEvent };
  };
  if (fleets !== undefined)
    return new FleetsLocker(fleets, { clock, open: ({ nodes, policy }, among) => openNodes(settings(policy, { nodes, among })) });
  const policy = readPolicy(options);
  return new QuorumLocker(openNodes(settings(policy, { nodes: options.nodes ?? [] })), policy, clock);
}

function published(event: NodeEvent, named: Pick<NodeEvent, "fleet">): void {
  if (channels.node.hasSubscribers) channels.node.publish({ ...event, ...named });
}
