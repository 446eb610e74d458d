// The curves of one panel over time, from zero, with the judged trend of the steepest, and the
// verdict in words.
import { type Curve, type Finding, isFlat, isJudged } from "../checkers/curves.js";
import { quantile } from "../checkers/statistics.js";
import type { Point } from "../history/samples.js";
import { figure, slopeOf } from "./curve-table.js";
import { type Box, escaped, HUES, label, roundTicks, short } from "./drawing.js";

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

export function drawPanel(finding: Finding, box: Box, lastMs: number): string {
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
