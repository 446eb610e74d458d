// Opens a locker over one fleet of nodes.
import { QuorumLocker } from "./locker.js";
import { type LockerOptions, readPolicy } from "./options/policy.js";
import { systemClock } from "./platform/clock.js";
import { channels } from "./protocol/events.js";
import type { Locker } from "./protocol/locker.js";
import { openNodes } from "./redis/fleet.js";

/**
 * A locker over N independent Redis masters. Begins to connect at once; nothing needs to be awaited
 * before the first call. Throws TypeError or RangeError for invalid options, before any I/O.
 */
export function createLocker(options: LockerOptions): Locker {
  const policy = readPolicy(options);
  const clock = systemClock();
  const { nodes, namespace, nodeTimeoutMs, connectTimeoutMs, maxTtlMs, retentionMs } = policy;
  const fleet = openNodes({
    nodes,
    namespace,
    nodeTimeoutMs,
    connectTimeoutMs,
    maxTtlMs,
    retentionMs,
    clock,
    onEvent: (event) => {
      if (channels.node.hasSubscribers) channels.node.publish(event);
    },
  });
  return new QuorumLocker(fleet, policy, clock);
}
