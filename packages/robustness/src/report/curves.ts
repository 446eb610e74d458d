// A soak as one picture: what was done, what disturbed it, and every curve as a small multiple.
import { type Curve, type Finding, isFlat, isJudged } from "../checkers/curves.js";
import { quantile } from "../checkers/statistics.js";
import type { Disturbance, Point, Soaked } from "../history/samples.js";
import { figure, slopeOf } from "./curve-table.js";
import { type Box, escaped, HUES, label, MARGIN, roundTicks, short, svgDocument, WIDTH } from "./drawing.js";
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

// The curves of one panel over time, the judged trend of the steepest, the verdict in words.
interface Frame {
  readonly plot: Box;
  /** The round values of the axis, from 0 to its top. */
  readonly ticks: readonly number[];
  readonly lastMs: number;
}

const HEAD = 38;
const FOOT = 18;
const LEFT = 42;
const MINUTE_MS = 60_000;
/** Of figures in the size that they have here, about. */
const LETTER_WIDTH = 6.5;

function drawPanel(finding: Finding, box: Box, lastMs: number): string {
  const plot = { x: box.x + LEFT, y: box.y + HEAD, width: box.width - LEFT, height: box.height - HEAD - FOOT };
  const { panel, curves } = finding;
  const ticks = roundTicks(highestOf(curves));
  const inUnit = panel.unit === "" || panel.unit === "/s" ? "" : `, ${panel.unit}`;
  const frame = { plot, ticks, lastMs };
  return [
    `<g class="panel"><text class="title" x="${box.x}" y="${box.y + 12}">${escaped(panel.title)}${inUnit}</text>`,
    verdict(finding, box),
    `<rect class="warm" x="${plot.x}" y="${plot.y}" width="${short(plot.width / 3)}" height="${plot.height}"/>`,
    yAxis(frame),
    xAxis(frame),
    ...curves.map((curve, i) => `<path class="curve h${i % HUES}" d="${path(curve.points, frame)}"/>`),
    trend(finding, frame),
    "</g>",
  ].join("\n");
}

// Without its highest peaks, which would flatten the rest: what is above the axis is cut off.
function highestOf(curves: readonly Curve[]): number {
  const values = curves.flatMap(({ points }) => points.map(({ value }) => value));
  const most = values.length === 0 ? 0 : quantile(values, 0.98);
  return Math.max(most, ...curves.map(({ verdict }) => verdict.level || 0)) * 1.05;
}

function verdict(finding: Finding, { x, y }: Box): string {
  const at = `x="${x}" y="${y + 26}"`;
  if (!isJudged(finding)) return `<text ${at}>not judged</text>`;
  if (isFlat(finding)) return `<text ${at}>flat · ${escaped(slopeOf(finding))}</text>`;
  const kind = finding.worst?.verdict.kind ?? "";
  return `<text class="bad" ${at}>${kind === "falling" ? "▼" : "▲"} ${kind} · ${escaped(slopeOf(finding))}</text>`;
}

function yAxis(frame: Frame): string {
  const { plot, ticks } = frame;
  return ticks
    .map((tick) => {
      const y = short(yOf(tick, frame));
      const line = `<path class="${tick === 0 ? "base" : "hair"}" d="M${plot.x} ${y}h${plot.width}"/>`;
      return `${line}<text class="end" x="${plot.x - 5}" y="${short(Number(y) + 4)}">${escaped(figure(tick))}</text>`;
    })
    .join("");
}

function xAxis({ plot, lastMs }: Frame): string {
  const ticks = roundTicks(lastMs / MINUTE_MS);
  const minutes = lastMs / MINUTE_MS;
  const end = `${figure(Number(minutes.toFixed(minutes < 10 ? 1 : 0)))} min`;
  const endsAt = plot.x + plot.width;
  const at = (minute: number): number => plot.x + (plot.width * minute * MINUTE_MS) / lastMs;
  const y = plot.y + plot.height + 14;
  const between = ticks
    .filter((minute) => at(minute) + (figure(minute).length / 2 + 1 + end.length) * LETTER_WIDTH < endsAt) // They would touch the last one.
    .map((minute) => label("middle", at(minute), y)(figure(minute)));
  return [...between, label("end", endsAt, y)(end)].join("");
}

function yOf(value: number, { plot, ticks }: Frame): number {
  return plot.y + plot.height * (1 - Math.min(1, value / (ticks.at(-1) ?? 1)));
}

/**
 * Points between two of the same height are left out, and the others are relative to the one
 * before: there are tens of thousands.
 */
function path(points: readonly Point[], frame: Frame): string {
  const { plot, lastMs } = frame;
  const tenths = (value: number): number => Math.round(value * 10);
  const drawn = points.map(({ atMs, value }) => ({ x: tenths(plot.x + (plot.width * atMs) / lastMs), y: tenths(yOf(value, frame)) }));
  const kept = drawn.filter(({ y }, i) => y !== drawn[i - 1]?.y || y !== drawn[i + 1]?.y);
  return kept
    .map(({ x, y }, i) => {
      const before = kept[i - 1];
      return before === undefined ? `M${x / 10} ${y / 10}` : step((x - before.x) / 10, (y - before.y) / 10);
    })
    .join("");
}

function step(dx: number, dy: number): string {
  const [x, y] = [dx, dy].map((value) => String(value).replace(/^(-?)0\./, "$1."));
  return dy === 0 ? `h${x}` : `l${x}${dy < 0 ? "" : " "}${y}`;
}

function trend(finding: Finding, frame: Frame): string {
  const { worst } = finding;
  if (worst === undefined || !isJudged(finding) || Number.isNaN(worst.verdict.perHour)) return "";
  const { perHour, intercept, judged } = worst.verdict;
  const [fromMs, untilMs] = [judged[0]?.atMs ?? 0, judged.at(-1)?.atMs ?? 0];
  const at = (atMs: number): number => Math.max(0, intercept + (perHour / (60 * MINUTE_MS)) * atMs);
  const { plot, lastMs } = frame;
  const x = (atMs: number): string => short(plot.x + (plot.width * atMs) / lastMs);
  const line = `M${x(fromMs)} ${short(yOf(at(fromMs), frame))}L${x(untilMs)} ${short(yOf(at(untilMs), frame))}`;
  return `<path class="trend${isFlat(finding) ? "" : " worse"}" d="${line}"/>`;
}
