// The faults of a picture as rows of bars: one row for each node and gateway, one for each other place.
import type { InjectedFault, Place } from "../faults/fault-log.js";
import { groupedBy } from "../history/records.js";
import { bar, label, type TimeScale } from "./drawing.js";

const order: readonly Place[] = [
  "nodes",
  "links to nodes",
  "gateways",
  "links to gateways",
  "store",
  "links to the store",
  "clients",
  "ambush",
];
const ROW = 18;
const BAR = 11;

export function faultRows(scale: TimeScale, injected: readonly InjectedFault[], y: number): { height: number; parts: readonly string[] } {
  const seen = injected.filter(({ fromAt, untilAt }) => fromAt < scale.untilAt && untilAt > scale.fromAt);
  const rows = groupedBy(seen, ({ place, target }) => (place === "nodes" || place === "gateways" ? target : place));
  const rank = (name: string): number => order.indexOf(rows.get(name)?.[0]?.place ?? "ambush");
  const names = [...rows.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  const parts = names.flatMap((name, i) => {
    const top = y + i * ROW;
    const bars = (rows.get(name) ?? []).map(({ fromAt, untilAt, kind, target, place }) => {
      const end = Number.isFinite(untilAt) ? untilAt : scale.untilAt;
      const title = `${kind}: ${target}, ${(end - fromAt).toFixed(0)} ms`;
      return bar(scale, { fromAt, untilAt: end, y: top + 3, height: BAR, kind: place.split(" ")[0] ?? "", title });
    });
    return [label("end", scale.x - 10, top + 12)(name), ...bars];
  });
  return { height: names.length * ROW, parts };
}
