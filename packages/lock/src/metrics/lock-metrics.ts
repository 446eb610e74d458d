// The lock's events as metrics for Prometheus, for users of prom-client: an entry of its own, so
// that only they need that package. Labels come from fixed lists; resources and tokens are none.
// Where a locker has several fleets, what happened in one of them carries its name as the label
// fleet.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import {
  type AttemptEvent,
  channelNames,
  type EndEvent,
  type ForceReleaseEvent,
  inFleet,
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
    labelNames: ["outcome", "fleet"],
    registers,
  });
  const seals = new Counter({
    name: "palisade_lock_second_rounds_total",
    help: "Attempts whose nodes did not agree on a token at once",
    labelNames: ["fleet"],
    registers,
  });
  const waits = new Histogram({
    name: "palisade_lock_wait_seconds",
    help: "From the call of acquire to its end, by outcome",
    labelNames: ["outcome", "fleet"],
    buckets: waitBuckets,
    registers,
  });
  return {
    attempt: ({ outcome, rounds, fleet }: AttemptEvent) => {
      attempts.inc({ outcome, ...inFleet(fleet) });
      if (rounds > 1) seals.inc(inFleet(fleet));
    },
    wait: ({ outcome, waitedMs, fleet }: WaitEvent) => waits.observe({ outcome, ...inFleet(fleet) }, waitedMs / 1_000),
  };
}

function leaseReporters(registry: Registry): Reporters {
  const registers = [registry];
  const holds = new Histogram({
    name: "palisade_lock_hold_seconds",
    help: "How long leases were held, by why they ended",
    labelNames: ["reason", "fleet"],
    buckets: holdBuckets,
    registers,
  });
  const renewals = new Counter({
    name: "palisade_lock_renewals_total",
    help: "Renewals by outcome",
    labelNames: ["outcome", "fleet"],
    registers,
  });
  const losses = new Counter({
    name: "palisade_lock_losses_total",
    help: "Leases that ended otherwise than by their release",
    labelNames: ["reason", "fleet"],
    registers,
  });
  const forced = new Counter({
    name: "palisade_lock_forced_releases_total",
    help: "Holders removed by this process",
    labelNames: ["fleet"],
    registers,
  });
  return {
    end: ({ reason, heldMs, fleet }: EndEvent) => holds.observe({ reason, ...inFleet(fleet) }, heldMs / 1_000),
    renewal: ({ outcome, fleet }: RenewalEvent) => renewals.inc({ outcome, ...inFleet(fleet) }),
    loss: ({ reason, fleet }: LossEvent) => losses.inc({ reason, ...inFleet(fleet) }),
    forceRelease: ({ fleet }: ForceReleaseEvent) => forced.inc(inFleet(fleet)),
  };
}

function nodeReporters(registry: Registry): Reporters {
  const gauge = (name: string, help: string): NodesOf => {
    const nodes = new NodesOf();
    new Gauge({
      name,
      help,
      labelNames: ["fleet"],
      registers: [registry],
      collect() {
        for (const [fleet, { size }] of nodes.byFleet) this.set(inFleet(fleet), size);
      },
    });
    return nodes;
  };
  const quarantined = gauge("palisade_lock_quarantined_nodes", "Nodes that do not vote until their memory is rebuilt");
  const disconnected = gauge("palisade_lock_disconnected_nodes", "Nodes that were connected and are not");
  return {
    node: (event: NodeEvent) => {
      if (event.kind === "quarantined") quarantined.of(event).add(event.node);
      else if (event.kind === "admitted") quarantined.of(event).delete(event.node);
      else if (event.kind === "disconnected") disconnected.of(event).add(event.node);
      else if (event.kind === "connected") disconnected.of(event).delete(event.node);
    },
  };
}

class NodesOf {
  /** Without a name: where a locker has one fleet. */
  readonly byFleet = new Map<string | undefined, Set<string>>([[undefined, new Set()]]);

  of({ fleet }: NodeEvent): Set<string> {
    const nodes = this.byFleet.get(fleet) ?? new Set();
    this.byFleet.set(fleet, nodes);
    return nodes;
  }
}
