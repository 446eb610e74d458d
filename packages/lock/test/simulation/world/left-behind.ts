// What must not be on the nodes when everybody has given back what he had: keys of processes that live, and anything but a node's record that has no end.
import type { Machine } from "../network/machine.js";
import type { FaultKind, Scenario } from "./scenario.js";
import type { Station } from "./station.js";

/** After these a key may live again that was given back, or live longer than its owner thinks it worth giving back. */
const revives: readonly FaultKind[] = ["second time", "lose tail", "jump node"];

export interface AtTheEnd {
  readonly stations: readonly Station[];
  readonly clocks: Scenario["clocks"];
  readonly faults: Readonly<Record<FaultKind, number>>;
  /** Owners who did not have to give back what they had. */
  readonly excused: ReadonlySet<string>;
}

export function keysLeftBehind(machines: readonly Machine[], { stations, clocks, faults, excused }: AtTheEnd): readonly string[] {
  const alive = new Set(stations.map(({ name }) => name));
  const mayRevive = clocks === "wild" || revives.some((kind) => faults[kind] > 0);
  return machines.flatMap(({ server }) =>
    [...server.memory.alive(server.wallMs())].flatMap(({ key, value, leftMs }) => {
      if (key.endsWith(":node")) return [];
      if (leftMs === -1) return [`${key} on ${server.name} has no end`];
      if (!key.includes(":lock:") || mayRevive) return [];
      const owner = String(value).split("|", 1)[0] ?? "";
      if (excused.has(owner) || !alive.has(owner.split("-", 1)[0] ?? "")) return [];
      return [`${key} on ${server.name} is ${String(value)}'s for ${leftMs} ms more, who is alive and done`];
    }),
  );
}
