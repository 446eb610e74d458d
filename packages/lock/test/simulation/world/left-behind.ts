// What must not be on the nodes when everybody has given back what he had: keys of processes that live, and anything but a node's record that has no end.
import type { Machine } from "../network/machine.js";
import type { FaultKind } from "./scenario.js";
import type { Station } from "./station.js";

/** After these a key may live again that was given back, for as long as it lasts. */
const revives: readonly FaultKind[] = ["second time", "lose tail"];

export function keysLeftBehind(
  machines: readonly Machine[],
  stations: readonly Station[],
  faults: Readonly<Record<FaultKind, number>>,
): readonly string[] {
  const alive = new Set(stations.map(({ name }) => name));
  const mayRevive = revives.some((kind) => faults[kind] > 0);
  return machines.flatMap(({ server }) =>
    [...server.memory.alive(server.wallMs())].flatMap(({ key, value, leftMs }) => {
      if (key.endsWith(":node")) return [];
      if (leftMs === -1) return [`${key} on ${server.name} has no end`];
      const owner = String(value).split("-", 1)[0] ?? "";
      if (!key.includes(":lock:") || mayRevive || !alive.has(owner)) return [];
      return [`${key} on ${server.name} is ${String(value)}'s for ${leftMs} ms more, who is alive and done`];
    }),
  );
}
