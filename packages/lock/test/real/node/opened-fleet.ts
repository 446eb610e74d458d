// Opens the node layer for a test: short times, events recorded and awaitable, closed by `await using`. Not a test.
import { systemClock } from "../../../src/clock.js";
import type { LockNode } from "../../../src/node/lock-node.js";
import type { NodeEvent } from "../../../src/node/node-events.js";
import { type Fleet, type NodeSource, type OpenNodesOptions, openNodes } from "../../../src/node/open-nodes.js";

export interface Opened extends AsyncDisposable {
  readonly fleet: Fleet;
  readonly nodes: readonly LockNode[];
  readonly events: readonly NodeEvent[];
  node(name: string): LockNode;
  /** The first event of the kind, about the node if one is named, whether it has happened already or not. */
  heard<Kind extends NodeEvent["kind"]>(kind: Kind, node?: string): Promise<Extract<NodeEvent, { kind: Kind }>>;
}

/** Opens and waits for nothing. */
export function open(urls: readonly NodeSource[], options: Partial<OpenNodesOptions> & Pick<OpenNodesOptions, "namespace">): Opened {
  const events: NodeEvent[] = [];
  const waiting = new Set<() => void>();
  const fleet = openNodes({
    nodes: urls,
    nodeTimeoutMs: 1_000,
    connectTimeoutMs: 1_000,
    maxTtlMs: 10_000,
    retentionMs: 60_000,
    clock: systemClock(),
    onEvent(event) {
      events.push(event);
      for (const look of [...waiting]) look();
    },
    ...options,
  });
  return {
    fleet,
    nodes: fleet.nodes,
    events,
    node(name) {
      const found = fleet.nodes.find((node) => node.name === name);
      if (found === undefined) throw new RangeError(`no node is called ${name}`);
      return found;
    },
    heard: (kind, node) =>
      new Promise((resolve) => {
        const look = (): void => {
          const event = events.find((each) => each.kind === kind && (node === undefined || ("node" in each && each.node === node)));
          if (event === undefined) return;
          waiting.delete(look);
          resolve(event as Extract<NodeEvent, { kind: typeof kind }>);
        };
        waiting.add(look);
        look();
      }),
    [Symbol.asyncDispose]: () => fleet.close(),
  };
}

/** Opens and waits until the fleet has been founded or met. */
export async function opened(
  urls: readonly NodeSource[],
  options: Partial<OpenNodesOptions> & Pick<OpenNodesOptions, "namespace">,
): Promise<Opened> {
  const fleet = open(urls, options);
  await fleet.fleet.settled();
  return fleet;
}

let owners = 0;

/** A question for one or more resources with an owner of its own. */
export function asking(resources: string | readonly string[], ttlMs = 5_000) {
  return {
    resources: typeof resources === "string" ? [resources] : resources,
    owner: `owner-${++owners}`,
    label: `label ${owners}`,
    ttlMs,
  };
}
