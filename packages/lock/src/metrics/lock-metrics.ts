// The lock's events as metrics for Prometheus, for users of prom-client: an entry of its own, so
// that only they need that package. Labels come from fixed lists; resources and tokens are none.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { LeaseLostReason } from "../protocol/ballot.js";
import {
  type AttemptEvent,
  channelNames,
  type EndEvent,
  type ForceReleaseEvent,
  type LossEvent,
  type RenewalEvent,
  type WaitEvent,
} from "../protocol/events.js";
import type { Fleet, NodeInspection } from "../protocol/fleet.js";
import { majority } from "../quorum.js";

const waitBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];
const holdBuckets = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600];
const lossReasons: readonly Exclude<LeaseLostReason, "released">[] = ["expired", "taken", "unreachable", "quarantined", "closed"];
const nodeGaugeNames = { nodes: "palisade_lock_nodes", quorum: "palisade_lock_quorum", spare: "palisade_lock_spare_nodes" } as const;

type Reporters = Readonly<Partial<Record<keyof typeof channelNames, (event: never) => void>>>;

/** A locker, of which the nodes are asked for. */
interface NodeWatcher {
  readonly fleet: Pick<Fleet, "nodes">;
}

/**
 * Counts what all lockers of this process do, in the registry, until the returned function is
 * called; with a locker, also how its nodes stand. Names begin with `palisade_lock_`.
 */
export function lockMetrics(registry: Registry, locker?: NodeWatcher): () => void {
  const reporters: Reporters = { ...callReporters(registry), ...leaseReporters(registry) };
  if (locker !== undefined) nodeGauges(registry, locker);
  const subscriptions = Object.entries(reporters).map(([channel, report]) => ({
    name: channelNames[channel as keyof typeof channelNames],
    listener: (event: unknown) => report(event as never),
  }));
  for (const { name, listener } of subscriptions) subscribe(name, listener);
  return () => {
    for (const { name, listener } of subscriptions) unsubscribe(name, listener);
    for (const name of Object.values(nodeGaugeNames)) registry.removeSingleMetric(name);
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
  waits.zero({ outcome: "won" });
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
  // What appears with its first event has not risen, for Prometheus.
  for (const reason of lossReasons) losses.inc({ reason }, 0);
  return {
    end: ({ reason, heldMs }: EndEvent) => holds.observe({ reason }, heldMs / 1_000),
    renewal: ({ outcome }: RenewalEvent) => renewals.inc({ outcome }),
    loss: ({ reason }: LossEvent) => losses.inc({ reason }),
    forceRelease: (_: ForceReleaseEvent) => forced.inc(),
  };
}

const states: readonly NodeInspection["state"][] = ["votes", "waits", "silent"];

/** Asks the members whenever it is scraped. Where none may be asked, none votes. */
function nodeGauges(registry: Registry, { fleet }: NodeWatcher): void {
  let looking: Promise<readonly NodeInspection[]> | undefined;
  const look = (): Promise<readonly NodeInspection[]> => {
    looking ??= fleet
      .nodes()
      .catch(() => [])
      .finally(() => {
        looking = undefined;
      });
    return looking;
  };
  const votesOf = (nodes: readonly NodeInspection[]): number => nodes.filter(({ state }) => state === "votes").length;
  const registers = [registry];
  new Gauge({
    name: nodeGaugeNames.nodes,
    help: "Members of the fleet by state: votes, waits, silent",
    labelNames: ["state"],
    registers,
    async collect() {
      const nodes = await look();
      for (const state of states) this.set({ state }, nodes.filter((node) => node.state === state).length);
    },
  });
  new Gauge({
    name: nodeGaugeNames.quorum,
    help: "The majority of the members: votes that a lease needs, where a locker asks for no more",
    registers,
    async collect() {
      this.set(majority((await look()).length));
    },
  });
  new Gauge({
    name: nodeGaugeNames.spare,
    help: "Nodes that may fail now without stopping the lock; below 0 it stands still",
    registers,
    async collect() {
      const nodes = await look();
      this.set(votesOf(nodes) - majority(nodes.length));
    },
  });
}
