// When what disturbed the run: one row of marks for each kind, above all panels. Pure.
import type { Disturbance } from "../disturbances.js";
import type { Box } from "./panel.js";
import { escaped, short } from "./scale.js";

const ROW = 15;
const LABEL = 250;

export function stripHeight(disturbances: readonly Disturbance[]): number {
  return kindsOf(disturbances).length * ROW;
}

export function drawStrip(disturbances: readonly Disturbance[], box: Omit<Box, "height">, lastMs: number): string {
  const width = box.width - LABEL;
  return kindsOf(disturbances)
    .map((kind, row) => {
      const y = box.y + row * ROW;
      const marks = disturbances
        .filter(({ what }) => what === kind)
        .map(({ atMs }) => `M${short(box.x + LABEL + (width * atMs) / lastMs)} ${y + 2}v9`)
        .join("");
      return `<text x="${box.x}" y="${y + 10}">${escaped(kind)}</text><path class="hair" d="M${box.x + LABEL} ${y + 6.5}h${width}"/><path class="mark" d="${marks}"/>`;
    })
    .join("\n");
}

function kindsOf(disturbances: readonly Disturbance[]): readonly string[] {
  return [...new Set(disturbances.map(({ what }) => what))];
}
