// The lock's events as metrics for Prometheus, for users of prom-client: an entry of its own, so
// that only they need that package. Labels come from fixed lists; resources and tokens are none.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import {
  type AttemptEvent,
  channelNames,
  type EndEvent,
  type ForceReleaseEvent,
  type LossEvent,
  type NodeEvent,
  type RenewalEvent,
  type WaitEvent,
} from "../protocol/events.js";

const waitBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];
const holdBuckets = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600];

type Reporters = Readonly<Partial<Record<keyof typeof channelNames, (event: never) => void>>>;

/**
 * Counts what all lockers of this process do, in the registry, until the returned function is
 * called. Names begin with `palisade_lock_`.
 */
export function lockMetrics(registry: Registry): () => void {
  const reporters: Reporters = { ...callReporters(registry), ...leaseReporters(registry), ...nodeReporters(registry) };
  const subscriptions = Object.entries(reporters).map(([channel, report]) => ({
    name: channelNames[channel as keyof typeof channelNames],
    listener: (event: unknown) => report(event as never),
  }));
  for (const { name, listener } of subscriptions) subscribe(name, listener);
  return () => {
    for (const { name, listener } of subscriptions) unsubscribe(name, listener);
  };
}

function callReporters(registry: Registry): Reporters {
  const registers = [registry];
  const attempts = new Counter({
    name: "palisade_lock_attempts_total",
    help: "Attempts to acquire by outcome",
    labelNames: ["outcome"],
    registers,
  });
  const seals = new Counter({
    name: "palisade_lock_second_rounds_total",
    help: "Attempts whose nodes did not agree on a token at once",
    registers,
  });
  const waits = new Histogram({
    name: "palisade_lock_wait_seconds",
    help: "From the call of acquire to its end, by outcome",
    labelNames: ["outcome"],
    buckets: waitBuckets,
    registers,
  });
  return {
    attempt: ({ outcome, rounds }: AttemptEvent) => {
      attempts.inc({ outcome });
      if (rounds > 1) seals.inc();
    },
    wait: ({ outcome, waitedMs }: WaitEvent) => waits.observe({ outcome }, waitedMs / 1_000),
  };
}

function leaseReporters(registry: Registry): Reporters {
  const registers = [registry];
  const holds = new Histogram({
    name: "palisade_lock_hold_seconds",
    help: "How long leases were held, by why they ended",
    labelNames: ["reason"],
    buckets: holdBuckets,
    registers,
  });
  const renewals = new Counter({
    name: "palisade_lock_renewals_total",
    help: "Renewals by outcome",
    labelNames: ["outcome"],
    registers,
  });
  const losses = new Counter({
    name: "palisade_lock_losses_total",
    help: "Leases that ended otherwise than by their release",
    labelNames: ["reason"],
    registers,
  });
  const forced = new Counter({
    name: "palisade_lock_forced_releases_total",
    help: "Holders removed by this process",
    registers,
  });
  return {
    end: ({ reason, heldMs }: EndEvent) => holds.observe({ reason }, heldMs / 1_000),
    renewal: ({ outcome }: RenewalEvent) => renewals.inc({ outcome }),
    loss: ({ reason }: LossEvent) => losses.inc({ reason }),
    forceRelease: (_: ForceReleaseEvent) => forced.inc(),
  };
}

function nodeReporters(registry: Registry): Reporters {
  const gauge = (name: string, help: string): Set<string> => {
    const nodes = new Set<string>();
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(nodes.size);
      },
    });
    return nodes;
  };
  const quarantined = gauge("palisade_lock_quarantined_nodes", "Nodes that do not vote until their memory is rebuilt");
  const disconnected = gauge("palisade_lock_disconnected_nodes", "Nodes that were connected and are not");
  return {
    node: (event: NodeEvent) => {
      if (event.kind === "quarantined") quarantined.add(event.node);
      else if (event.kind === "admitted") quarantined.delete(event.node);
      else if (event.kind === "disconnected") disconnected.add(event.node);
      else if (event.kind === "connected") disconnected.delete(event.node);
    },
  };
}
