// Opens the node layer for a test: patient unless it is told otherwise, events recorded and
// awaitable, closed when the test is over at the latest. Not a test.
import { onTestFinished } from "vitest";
import { systemClock } from "../../../src/platform/clock.js";
import type { NodeEvent } from "../../../src/protocol/events.js";
import type { OpenFleet } from "../../../src/protocol/fleet.js";
import type { LockNode, ServerSource } from "../../../src/protocol/node.js";
import type { FleetOptions } from "../../../src/redis/fleet.js";
import { openFleet } from "../../../src/redis/open-fleet.js";

/** What is reported from some moment on. */
export interface Reports {
  readonly events: readonly NodeEvent[];
  /** The first event of the kind, about the node if one is named, past or future. */
  heard<Kind extends NodeEvent["kind"]>(kind: Kind, node?: string): Promise<Extract<NodeEvent, { kind: Kind }>>;
}

export interface Opened extends Reports, AsyncDisposable {
  readonly fleet: OpenFleet;
  node(name: string): LockNode;
  /** What is reported from now on. */
  fromNow(): Reports;
}

class Recorder {
  readonly #events: NodeEvent[] = [];
  readonly #waiting = new Set<() => void>();

  record(event: NodeEvent): void {
    this.#events.push(event);
    for (const look of [...this.#waiting]) look();
  }

  fromNow(): Reports {
    const all = this.#events;
    const start = all.length;
    return {
      get events() {
        return all.slice(start);
      },
      heard: (kind, node) =>
        new Promise((resolve) => {
          const look = (): void => {
            const event = all.find(
              (each, index) => index >= start && each.kind === kind && (node === undefined || ("node" in each && each.node === node)),
            );
            if (event === undefined) return;
            this.#waiting.delete(look);
            resolve(event as Extract<NodeEvent, { kind: typeof kind }>);
          };
          this.#waiting.add(look);
          look();
        }),
    };
  }
}

/** Of a fleet that is given time. */
const patience = {
  nodeTimeoutMs: 10_000,
  connectTimeoutMs: 10_000,
  maxTtlMs: 60_000,
  retentionMs: 60_000,
  clock: systemClock(),
  onEvent: (): void => {},
};

/** Opens and waits for nothing. */
export function open(urls: readonly ServerSource[], options: Partial<FleetOptions> & Pick<FleetOptions, "namespace">): Opened {
  const recorder = new Recorder();
  const reports = recorder.fromNow();
  const fleet = openFleet({
    ...patience,
    nodes: urls,
    onEvent: (event) => recorder.record(event),
    ...options,
  });
  onTestFinished(() => fleet.close());
  return {
    fleet,
    get events() {
      return reports.events;
    },
    heard: (kind, node) => reports.heard(kind, node),
    fromNow: () => recorder.fromNow(),
    node(name) {
      const found = fleet.nodes.find((node) => node.name === name);
      if (found === undefined) throw new RangeError(`no node is called ${name}`);
      return found;
    },
    [Symbol.asyncDispose]: () => fleet.close(),
  };
}

/** Opens and waits until the fleet has been founded or met. */
export async function opened(
  urls: readonly ServerSource[],
  options: Partial<FleetOptions> & Pick<FleetOptions, "namespace">,
): Promise<Opened> {
  const fleet = open(urls, options);
  await fleet.fleet.settled();
  return fleet;
}

let owners = 0;

/** A request for one or more resources with an owner of its own; its release notifies no waiter. */
export function asking(resources: string | readonly string[], ttlMs = 60_000) {
  return {
    resources: typeof resources === "string" ? [resources] : resources,
    owner: `owner-${++owners}`,
    label: `label ${owners}`,
    ttlMs,
    tells: false,
  };
}

/** The word of the ticket of all that wait, if they have no other. */
export const TICKET = ":ticket";

/** That of a caller which waits, since so many milliseconds. */
export function waiting(waitedMs = 0, ticket = TICKET) {
  return { wait: { sinceMs: Date.now() - waitedMs, waitedMs, ticket, reserveMs: 40 } };
}
