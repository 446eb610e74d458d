// A soak as people read it: the curves that are not flat in words, and every curve in one picture,
// with its trend and verdict.
import { type Finding, isBad } from "../checkers/curves.js";
import { quantile } from "../checkers/growth.js";
import { counted } from "../history.js";
import type { SoakAsked, Soaked } from "../runs/soak.js";
import { HUES, label, line, MARGIN, type Plot, short, svgDocument, WIDTH, whole } from "./svg.js";

const HOUR_MS = 3_600_000;

export function textReport({ rows, disturbances, servers, operations, failures }: Soaked, findings: readonly Finding[]): string {
  const minutes = (rows.at(-1)?.atMs ?? 0) / 60_000;
  const total = Object.values(operations).reduce((sum, count) => sum + count, 0);
  return [
    "",
    ...servers,
    `${whole(total)} operations in ${minutes.toFixed(1)} min: ${listed(Object.entries(operations))}`,
    `refused or failed: ${listed(Object.entries(failures))}`,
    `disturbances: ${listed(counted(disturbances.map(({ what }) => what)))}`,
    ...findings.filter(({ curves }) => curves.some(isBad)).map((finding) => `${titleOf(finding)}: ${verdictOf(finding)}`),
    headline(findings, minutes),
  ].join("\n");
}

function headline(findings: readonly Finding[], minutes: number): string {
  const judged = findings.flatMap(({ curves }) => curves);
  const bad = judged.filter(isBad).length;
  return `${minutes.toFixed(1)} minutes of contended load: ${judged.length} curves, ${bad === 0 ? "all flat" : `${bad} not flat`}`;
}

export function titleOf({ panel: { group, title, unit } }: Finding): string {
  return `${group}, ${title}${unit === "" ? "" : ` (${unit})`}`;
}

/** The worst curve's, with its slope and the limits between which that is, at 98 %. */
export function verdictOf({ worst }: Finding): string {
  const { kind, perHour, leastPerHour, mostPerHour } = worst.verdict;
  if (kind === "too few values") return `TOO FEW VALUES (${worst.name})`;
  const slope = `${signed(perHour)}/h`;
  return isBad(worst)
    ? `${kind.toUpperCase()} (${worst.name}) ${slope} [${signed(leastPerHour)} … ${signed(mostPerHour)}]`
    : `flat ${slope}`;
}

function signed(value: number): string {
  return `${value > 0 ? "+" : ""}${Number(value.toPrecision(3))}`;
}

function listed(counts: readonly (readonly [string, number])[]): string {
  const parts = [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name} ${whole(count)}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}

const COLUMNS = 4;
const GAP = 20;
const PANEL_WIDTH = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS;
const ROW_HEIGHT = 150;

/** The disturbances as marks in the first row, then each panel as a small multiple. */
export function picture({ seed, leaks }: SoakAsked, { rows, disturbances }: Soaked, findings: readonly Finding[]): string {
  const untilAt = rows.at(-1)?.atMs ?? 1;
  const control = leaks.length === 0 ? "" : ` Control: client 1 leaks ${leaks.join(", ")}.`;
  const explained = `seed ${seed}; the first third warms up and is not judged; dashed: the trend of the steepest curve.${control}`;
  const strip = { fromAt: 0, untilAt, x: MARGIN, y: 66, width: WIDTH - 2 * MARGIN, height: 8, top: 1 };
  const marks = disturbances.map(({ atMs }) => line(strip, "trend", [[atMs, 0] as const, [atMs, 1] as const]));
  const panels = findings.map((finding, i) => {
    const x = MARGIN + (i % COLUMNS) * (PANEL_WIDTH + GAP);
    return panel(finding, { ...strip, x, y: 118 + Math.floor(i / COLUMNS) * ROW_HEIGHT, width: PANEL_WIDTH, height: 84 });
  });
  const height = 100 + Math.ceil(findings.length / COLUMNS) * ROW_HEIGHT;
  return svgDocument(height, headline(findings, untilAt / 60_000), [label("title", [MARGIN, 58], explained), ...marks, ...panels]);
}

function panel(finding: Finding, box: Plot): string {
  const { curves, worst } = finding;
  const values = curves.flatMap(({ points }) => points.map(({ value }) => value));
  // Without its highest peaks, which would flatten the rest: what is above the axis is cut off.
  const plot = { ...box, top: Math.max(quantile(values, 0.98), ...curves.map(({ verdict }) => verdict.level || 0)) * 1.05 || 1 };
  const { x, y, width, height, top } = plot;
  const trend = worst?.verdict.judged.map(({ atMs }) => {
    return [atMs, worst.verdict.intercept + (worst.verdict.perHour / HOUR_MS) * atMs] as const;
  });
  return [
    `<g class="panel">${label("title", [x, y - 20], titleOf(finding))}`,
    label(curves.some(isBad) ? "bad" : "", [x, y - 7], verdictOf(finding).replace(/ \[.*/, "")),
    `<rect class="shade" x="${short(x)}" y="${y}" width="${short(width / 3)}" height="${height}"/>`,
    `<path class="hair" d="M${short(x)} ${y}V${y + height}h${short(width)}"/>`,
    label("", [x + 3, y + 10], `${Number(top.toPrecision(3))}`),
    ...curves.map(({ points }, i) =>
      line(
        plot,
        `curve h${i % HUES}`,
        points.map(({ atMs, value }) => [atMs, value] as const),
      ),
    ),
    ...(trend === undefined || Number.isNaN(worst?.verdict.perHour)
      ? []
      : [
          line(
            plot,
            "trend",
            [trend[0], trend.at(-1)].flatMap((end) => (end === undefined ? [] : [end])),
          ),
        ]),
    "</g>",
  ].join("\n");
}
