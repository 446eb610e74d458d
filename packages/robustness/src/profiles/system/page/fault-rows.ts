// The rows of faults in a picture: one for each node and gateway, one for each other place. Pure.
import type { Place, Struck } from "../../../faults/fault-log.js";
import { groupedBy } from "../history.js";
import { bar, label, type Scale } from "./markup.js";

const order: readonly Place[] = [
  "nodes",
  "ways to nodes",
  "gateways",
  "ways to gateways",
  "store",
  "ways to the store",
  "clients",
  "ambush",
];
const ROW = 18;
const BAR = 11;

export interface Rows {
  readonly height: number;
  readonly shapes: readonly string[];
}

export function faultRows(scale: Scale, struck: readonly Struck[], y: number): Rows {
  const seen = struck.filter(({ fromAt, untilAt }) => fromAt < scale.untilAt && untilAt > scale.fromAt);
  const rows = groupedBy(seen, rowOf);
  const names = [...rows.keys()].sort((a, b) => rank(rows.get(a)?.[0]) - rank(rows.get(b)?.[0]) || a.localeCompare(b));
  const shapes = names.flatMap((name, i) => {
    const top = y + i * ROW;
    const bars = (rows.get(name) ?? []).map(({ fromAt, untilAt, kind, target, place }) => {
      const end = Number.isFinite(untilAt) ? untilAt : scale.untilAt;
      const title = `${kind}: ${target}, ${(end - fromAt).toFixed(0)} ms`;
      return bar(scale, { fromAt, untilAt: end, y: top + 3, height: BAR, kind: `fault ${place.split(" ")[0]}`, title });
    });
    return [label(name, top + 12), ...bars];
  });
  return { height: names.length * ROW, shapes };
}

function rowOf({ place, target }: Struck): string {
  return place === "nodes" || place === "gateways" ? target : place;
}

function rank(struck: Struck | undefined): number {
  return struck === undefined ? order.length : order.indexOf(struck.place);
}
