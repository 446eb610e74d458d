// One act as an SVG drawing: a lane per worker and server from top to bottom, a row per event, a
// bar where a lease is held, hatching where a process stands still. Lanes stand in the same place
// in every act of a scenario. Rows have equal height, because what matters happens within
// milliseconds and waiting takes seconds; the time stands beside each.
import { type ActBegins, type Check, type Step, serverLanes } from "./events.js";
import { escaped, wrapped } from "./text.js";

type Row = Step | Check;

const WIDTH = 1232;
const TIME_WIDTH = 78;
const LANES_WIDTH = 520;
const TEXT_START = TIME_WIDTH + LANES_WIDTH + 8;
const TEXT_COLUMNS = 76;
const ROW_HEIGHT = 25;
const LINE_HEIGHT = 17;
const HEAD_HEIGHT = 34;
const NAME_LINE_HEIGHT = 16;
const NAME_CHARACTER_WIDTH = 8.6;

interface PlacedRow {
  readonly row: Row;
  readonly lines: readonly string[];
  readonly top: number;
  readonly height: number;
}

/** Where everything goes. */
interface Layout {
  /** Those of the whole scenario; this act's own are drawn. */
  readonly lanes: readonly string[];
  readonly drawn: readonly string[];
  readonly headHeight: number;
  readonly rows: readonly PlacedRow[];
  readonly height: number;
}

export interface DrawnAct {
  readonly begins: ActBegins;
  readonly rows: readonly Row[];
}

/** The lanes of a whole scenario: workers as they appear, then the servers. */
export function lanesOf(acts: readonly DrawnAct[]): readonly string[] {
  const all = new Set(acts.flatMap((act) => lanesOfOne(act)));
  return [...[...all].filter((lane) => !serverLanes.includes(lane)), ...serverLanes.filter((lane) => all.has(lane))];
}

function lanesOfOne({ begins, rows }: DrawnAct): readonly string[] {
  const named = rows.flatMap((row) => (row.event === "step" ? [row.from, row.to ?? row.from] : []));
  return [...new Set([...begins.actors, ...named])];
}

export function drawAct(drawn: DrawnAct, lanes: readonly string[]): string {
  const layout = arrange(drawn, lanes);
  const { act } = drawn.begins;
  const { height } = layout;
  return `<svg class="act" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(act)}">
${layout.rows
  .filter((_, index) => index % 2 === 0)
  .map(drawBand)
  .join("")}
${layout.drawn.map((lane) => drawLane(layout, lane)).join("\n")}
${layout.rows.map((placed) => drawRow(layout, placed)).join("\n")}
</svg>`;
}

function drawBand({ top, height }: PlacedRow): string {
  return `<rect class="band" x="0" y="${top}" width="${WIDTH}" height="${height}"/>`;
}

function arrange(act: DrawnAct, lanes: readonly string[]): Layout {
  const { rows } = act;
  const names = lanes.map((lane) => nameLines(lane, lanes.length).length);
  const head = HEAD_HEIGHT + (Math.max(1, ...names) - 1) * NAME_LINE_HEIGHT;
  let top = head;
  const placed = rows.map((row) => {
    const lines = wrapped(row.event === "step" ? row.text : `${row.ok ? "✓" : "✗"} ${row.claim}`, TEXT_COLUMNS);
    const height = ROW_HEIGHT + (lines.length - 1) * LINE_HEIGHT;
    const place = { row, lines, top, height };
    top += height;
    return place;
  });
  return { lanes, drawn: lanesOfOne(act), headHeight: head, rows: placed, height: top + 8 };
}

function drawLane(layout: Layout, lane: string): string {
  const x = xOf(layout, lane);
  const bars = [...spans(layout, lane, ["holds", "over"])].map(
    ([from, to]) => `<rect class="lease" x="${x - 4}" y="${from}" width="8" height="${to - from}" rx="3"/>`,
  );
  const stops = [...spans(layout, lane, ["stops", "resumes"])].map(
    ([from, to]) => `<rect fill="url(#stopped)" class="lane" x="${x - 7}" y="${from}" width="14" height="${to - from}" rx="3"/>`,
  );
  const lines = nameLines(lane, layout.lanes.length);
  const name = lines.map((line, number) => {
    const y = layout.headHeight - 14 - (lines.length - 1 - number) * NAME_LINE_HEIGHT;
    return `<tspan x="${x}" y="${y}">${escaped(line)}</tspan>`;
  });
  const size = layout.lanes.length > 6 ? " narrow" : "";
  return `<g style="--lane:${colour(layout, lane)}"><text class="name${size}" text-anchor="middle">${name.join("")}</text>
<line class="lane" x1="${x}" x2="${x}" y1="${layout.headHeight - 6}" y2="${layout.height - 4}"/>
${bars.join("")}${stops.join("")}</g>`;
}

/** From each row of the first kind in this lane to the next of the second, or to the end. */
function* spans(layout: Layout, lane: string, [first, last]: readonly [Step["kind"], Step["kind"]]): Generator<readonly [number, number]> {
  let from: number | undefined;
  for (const { row, top } of layout.rows) {
    if (row.event !== "step" || row.from !== lane) continue;
    if (row.kind === first) from ??= top + ROW_HEIGHT / 2;
    if (row.kind !== last || from === undefined) continue;
    yield [from, top + ROW_HEIGHT / 2];
    from = undefined;
  }
  if (from !== undefined) yield [from, layout.height - 4];
}

function drawRow(layout: Layout, { row, lines, top }: PlacedRow): string {
  const y = top + ROW_HEIGHT / 2;
  const text = lines
    .map((line, number) => `<tspan x="${TEXT_START}" y="${y + 4.5 + number * LINE_HEIGHT}">${escaped(line)}</tspan>`)
    .join("");
  const seconds = (row.atMs / 1_000).toFixed(3);
  const time = `<text class="time" x="${TIME_WIDTH - 18}" y="${y + 4.5}" text-anchor="end">${seconds} s</text>`;
  const label = `${time}<text class="${textClass(row)}">${text}</text>`;
  return row.event === "check" ? label : `${drawStep(layout, row, y)}${label}`;
}

function drawStep(layout: Layout, { kind, from, to }: Step, y: number): string {
  const start = xOf(layout, from);
  const dye = kind === "refuses" ? "var(--bad)" : kind === "breaks" ? "var(--warn)" : colour(layout, from);
  const group = (inside: string): string => `<g style="--lane:${dye}">${inside}</g>`;
  if (to === undefined) return group(`<circle class="dot" cx="${start}" cy="${y}" r="5"/>`);
  const end = xOf(layout, to);
  const side = end > start ? -1 : 1;
  const line = `<line class="arrow" x1="${start}" y1="${y}" x2="${end + side * 8}" y2="${y}"/>`;
  const dot = `<circle class="dot" cx="${start}" cy="${y}" r="4"/>`;
  const head = `<path class="head" d="M${end} ${y}l${side * 10} -5v10z"/>`;
  const cross = `<path class="cross" d="M${end - 6} ${y - 6}l12 12m0 -12l-12 12"/>`;
  return group(line + dot + (kind === "refuses" ? cross : head));
}

function textClass(row: Row): string {
  if (row.event === "check") return row.ok ? "held" : "failed";
  if (row.kind === "refuses") return "refused";
  return row.kind === "stops" || row.kind === "over" || row.kind === "breaks" ? "warn" : "";
}

function xOf({ lanes }: Layout, lane: string): number {
  return TIME_WIDTH + ((lanes.indexOf(lane) + 0.5) * LANES_WIDTH) / lanes.length;
}

/** As narrow as lanes are when there are many. */
function nameLines(lane: string, count: number): readonly string[] {
  return wrapped(lane, Math.floor(LANES_WIDTH / count / NAME_CHARACTER_WIDTH));
}

function colour({ lanes }: Layout, lane: string): string {
  if (serverLanes.includes(lane)) return `var(--${lane})`;
  const workers = lanes.filter((name) => !serverLanes.includes(name));
  return `var(--actor-${workers.indexOf(lane) % 5})`;
}
