// A soak as one picture: what was done, what disturbed it, and every curve as a small multiple.
import { type Finding, isFlat, isJudged } from "../checkers/curves.js";
import type { Disturbance, Soaked } from "../history/samples.js";
import { type Box, escaped, HUES, label, MARGIN, short, svgDocument, WIDTH } from "./drawing.js";
import { drawPanel } from "./panel.js";
import { whole } from "./table.js";

const COLUMNS = 5;
const GAP = 20;
const PANEL_HEIGHT = 140;
const ROW_HEIGHT = 154;
const GROUP_HEIGHT = 34;
const HEAD_HEIGHT = 92;
const STRIP_ROW = 15;
const STRIP_LABEL = 250;

const panelWidth = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS;

interface Load {
  readonly clients: number;
  readonly perSecond: number;
  /** Of client 1, in the control. */
  readonly leaks: readonly string[];
}

type Shown = Pick<Soaked, "samples" | "operations">;

export function drawCurves(asked: Load, soaked: Shown, findings: readonly Finding[]): string {
  const { disturbances, lastMs } = soaked.samples;
  const parts = [...remarks(asked, soaked)];
  parts.push(drawStrip(disturbances, { x: MARGIN, y: HEAD_HEIGHT, width: WIDTH - 2 * MARGIN }, lastMs));
  let y = HEAD_HEIGHT + kindsOf(disturbances).length * STRIP_ROW + 14;
  const measured = findings.filter(({ curves }) => curves.length > 0);
  for (const group of new Set(measured.map(({ panel }) => panel.group))) {
    const members = measured.filter(({ panel }) => panel.group === group);
    parts.push(groupHead(group, members, y));
    members.forEach((finding, i) => {
      const x = MARGIN + (i % COLUMNS) * (panelWidth + GAP);
      const top = y + GROUP_HEIGHT + Math.floor(i / COLUMNS) * ROW_HEIGHT;
      parts.push(drawPanel(finding, { x, y: top, width: panelWidth, height: PANEL_HEIGHT }, lastMs));
    });
    y += GROUP_HEIGHT + Math.ceil(members.length / COLUMNS) * ROW_HEIGHT;
  }
  return svgDocument(y + MARGIN / 2, headline(soaked, measured), parts);
}

function headline({ samples }: Shown, measured: readonly Finding[]): string {
  const judged = measured.filter(isJudged);
  const curves = judged.flatMap((finding) => finding.curves.filter(({ verdict }) => verdict.kind !== "not judged")).length;
  const bad = judged.filter((finding) => !isFlat(finding)).length;
  const minutes = (samples.lastMs / 60_000).toFixed(samples.lastMs < 600_000 ? 1 : 0);
  return `${minutes} minutes of contended load: ${curves} curves, ${bad === 0 ? "all flat" : `not flat in ${bad} of ${judged.length} panels`}`;
}

function remarks({ clients, perSecond, leaks }: Load, { samples, operations }: Shown): string[] {
  const done = Object.values(operations).reduce((sum, count) => sum + count, 0);
  const servers = "five Redis nodes (appendfsync always), a gateway, Postgres";
  const work = `${whole(done)} operations of ${clients} client processes, about ${perSecond} per second; ${servers}; ${samples.disturbances.length} disturbances`;
  const how =
    "The shaded third warms up and is not judged. Dashed: the trend of the steepest curve of a panel; its slope is beside the verdict.";
  const control = leaks.length === 0 ? "" : ` Control: client 1 leaks ${leaks.join(", ")}.`;
  return [label("remark", MARGIN, 59)(work), label("remark", MARGIN, 76)(how + control)];
}

/** When what disturbed the run: one row of marks for each kind. */
function drawStrip(disturbances: readonly Disturbance[], { x, y: top, width: full }: Omit<Box, "height">, lastMs: number): string {
  const width = full - STRIP_LABEL;
  const left = x + STRIP_LABEL;
  return kindsOf(disturbances)
    .map((kind, row) => {
      const y = top + row * STRIP_ROW;
      const own = disturbances.filter(({ what }) => what === kind);
      const marks = own.map(({ atMs }) => `M${short(left + (width * atMs) / lastMs)} ${y + 2}v9`).join("");
      const line = `<path class="hair" d="M${left} ${y + 6.5}h${width}"/>`;
      return `${label("", x, y + 10)(kind)}${line}<path class="mark" d="${marks}"/>`;
    })
    .join("\n");
}

function kindsOf(disturbances: readonly Disturbance[]): readonly string[] {
  return [...new Set(disturbances.map(({ what }) => what))];
}

/** With the names of the curves, where a panel has several. */
function groupHead(group: string, members: readonly Finding[], y: number): string {
  const names = members[0]?.curves.map(({ name }) => name) ?? [];
  const keys = names.length < 2 ? [] : names.map((name, i) => key(name, i, y));
  return [
    `<path class="hair" d="M${MARGIN} ${y + 2}H${WIDTH - MARGIN}"/>`,
    `<text class="group" x="${MARGIN}" y="${y + 22}">${escaped(group)}</text>`,
    ...keys,
  ].join("\n");
}

function key(name: string, i: number, y: number): string {
  const x = MARGIN + 150 + i * 74;
  return `<rect class="k${i % HUES}" x="${x}" y="${y + 16}" width="14" height="3"/><text x="${x + 19}" y="${y + 22}">${escaped(name)}</text>`;
}
