// One act as an SVG drawing: a lane per worker and server from top to bottom, a row per event, a
// bar where a lease is held up to a mark at its end, hatching beside it where a process stands
// still. Lanes stand in the same place in every act of a scenario. Rows have equal height, because
// what matters happens within milliseconds and waiting takes seconds; the time stands beside each.
import { escaped } from "@palisade/testkit";
import { type ActBegins, type Check, type Step, serverLanes } from "./events.js";
import { wrapped } from "./text.js";

type Row = Step | Check;

const ROW_HEIGHT = 25;
const LINE_HEIGHT = 17;
const HEAD_HEIGHT = 34;
const NAME_LINE_HEIGHT = 16;

const WIDTH = 1232;
const TIME_WIDTH = 78;
const LANES_WIDTH = 520;
/** Of a character in the name of a lane. */
const NAME_WIDTH = 8.6;
/** Where the text of a row begins, and how many characters a line of it has. */
const TEXT_START = 606;
const TEXT_COLUMNS = 76;

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

/** What all acts of a scenario share. */
export interface Shared {
  readonly lanes: readonly string[];
  /** A text with the scenario's tokens cut to what differs. */
  readonly cut: (text: string) => string;
}

export function sharedBy(acts: readonly DrawnAct[]): Shared {
  return { lanes: lanesOf(acts), cut: tokenCutter(acts.flatMap(({ rows }) => rows)) };
}

/** Workers as they appear, then the servers. */
function lanesOf(acts: readonly DrawnAct[]): readonly string[] {
  const all = new Set(acts.flatMap((act) => lanesOfOne(act)));
  return [...[...all].filter((lane) => !serverLanes.includes(lane)), ...serverLanes.filter((lane) => all.has(lane))];
}

function lanesOfOne({ begins, rows }: DrawnAct): readonly string[] {
  const named = rows.flatMap((row) => (row.event === "step" ? [row.from, row.to ?? row.from] : []));
  return [...new Set([...begins.actors, ...named])];
}

/** Tokens have 15 digits, and those of a scenario differ in the last: 179500528850701 → …701. */
function tokenCutter(rows: readonly Row[]): Shared["cut"] {
  const tokens = [...new Set(rows.flatMap((row) => (row.event === "step" && row.token !== undefined ? [String(row.token)] : [])))];
  const length = tokens[0]?.length ?? 0;
  const isCut = length > 6 && tokens.every((token) => token.length === length);
  if (!isCut) return (text) => text;
  let kept = 3;
  while (new Set(tokens.map((token) => token.slice(-kept))).size < tokens.length) kept += 1;
  const pattern = new RegExp(`\\b(?:${tokens.join("|")})\\b`, "g");
  return (text) => text.replace(pattern, (token) => `…${token.slice(-kept)}`);
}

export function drawAct(drawn: DrawnAct, shared: Shared): string {
  const layout = arrange(drawn, shared);
  return `<svg class="act" viewBox="0 0 ${WIDTH} ${layout.height}" role="img" aria-label="${escaped(drawn.begins.act)}">
${layout.rows
  .filter((_, index) => index % 2 === 0)
  .map(({ top, height }) => `<rect class="band" x="0" y="${top}" width="${WIDTH}" height="${height}"/>`)
  .join("")}
${layout.drawn.map((lane) => drawLane(layout, lane)).join("\n")}
${layout.rows.map((placed, index) => drawRow(layout, placed, index)).join("\n")}
</svg>`;
}

function arrange(act: DrawnAct, { lanes, cut }: Shared): Layout {
  const names = lanes.map((lane) => nameLines(lane, lanes.length).length);
  const head = HEAD_HEIGHT + (Math.max(1, ...names) - 1) * NAME_LINE_HEIGHT;
  let top = head;
  const placed = act.rows.map((row) => {
    const lines = wrapped(cut(row.event === "step" ? row.text : `${signOf(row)} ${row.claim}`), TEXT_COLUMNS);
    const height = ROW_HEIGHT + (lines.length - 1) * LINE_HEIGHT;
    const place = { row, lines, top, height };
    top += height;
    return place;
  });
  return { lanes, drawn: lanesOfOne(act), headHeight: head, rows: placed, height: top + 8 };
}

/** Damage is a cross, although the control was to show it. */
function signOf({ ok, damage }: Check): string {
  return ok && !damage ? "✓" : "✗";
}

function drawLane(layout: Layout, lane: string): string {
  const x = xOf(layout, lane);
  const stops = spans(layout, lane, ["stops", "resumes"]).map(
    ({ from, to }) => `<rect fill="url(#stopped)" class="lane" x="${x - 11}" y="${from}" width="22" height="${to - from}" rx="3"/>`,
  );
  const bars = spans(layout, lane, ["holds", "over"]).map(({ from, to, ends }) => {
    const mark = ends ? `<line class="end" x1="${x - 17}" x2="${x + 17}" y1="${to}" y2="${to}"/>` : "";
    return `<rect class="lease" x="${x - 5}" y="${from}" width="10" height="${to - from}" rx="2"/>${mark}`;
  });
  const lines = nameLines(lane, layout.lanes.length);
  const name = lines.map((line, number) => {
    const y = layout.headHeight - 14 - (lines.length - 1 - number) * NAME_LINE_HEIGHT;
    return `<tspan x="${x}" y="${y}">${escaped(line)}</tspan>`;
  });
  const size = layout.lanes.length > 6 ? " small-name" : "";
  return `<g style="--lane:${colour(layout, lane)}"><text class="name${size}" text-anchor="middle">${name.join("")}</text>
<line class="lane" x1="${x}" x2="${x}" y1="${layout.headHeight - 6}" y2="${layout.height - 4}"/>
${stops.join("")}${bars.join("")}</g>`;
}

interface Span {
  readonly from: number;
  readonly to: number;
  /** Whether its end was seen, and not only the end of the act. */
  readonly ends: boolean;
}

/** From each row of the first kind in this lane to the next of the second, or to the end. */
function spans(layout: Layout, lane: string, [first, last]: readonly [Step["kind"], Step["kind"]]): readonly Span[] {
  const found: Span[] = [];
  let from: number | undefined;
  for (const { row, top } of layout.rows) {
    if (row.event !== "step" || row.from !== lane) continue;
    if (row.kind === first) from ??= top + ROW_HEIGHT / 2;
    if (row.kind !== last || from === undefined) continue;
    found.push({ from, to: top + ROW_HEIGHT / 2, ends: true });
    from = undefined;
  }
  return from === undefined ? found : [...found, { from, to: layout.height - 4, ends: false }];
}

function drawRow(layout: Layout, { row, lines, top }: PlacedRow, index: number): string {
  const y = top + ROW_HEIGHT / 2;
  const text = lines
    .map((line, number) => `<tspan x="${TEXT_START}" y="${y + 4.5 + number * LINE_HEIGHT}">${escaped(line)}</tspan>`)
    .join("");
  const seconds = (row.atMs / 1_000).toFixed(3);
  const time = `<text class="time" x="${TIME_WIDTH - 12}" y="${y + 4.5}" text-anchor="end">${seconds} s</text>`;
  const label = `${time}<text class="${textClass(row)}">${text}</text>`;
  if (row.event === "check") return label;
  return `${drawStep(layout, overwrites(layout, row, index) ? { ...row, kind: "overwrites" } : row, y)}${label}`;
}

/** Whether the answer to this request says that it replaced an update its sender never saw. */
function overwrites({ rows }: Layout, { kind, from, to }: Step, index: number): boolean {
  if (kind !== "asks") return false;
  const answer = rows.slice(index + 1).find(({ row }) => row.event === "step" && row.from === to && row.to === from);
  return answer?.row.event === "step" && answer.row.kind === "overwrites";
}

const dyes: Partial<Record<Step["kind"], string>> = { refuses: "var(--bad)", overwrites: "var(--bad)", breaks: "var(--warn)" };

function drawStep(layout: Layout, { kind, from, to }: Step, y: number): string {
  const start = xOf(layout, from);
  const dye = dyes[kind] ?? colour(layout, from);
  const group = (inside: string): string => `<g class="${kind}" style="--lane:${dye}">${inside}</g>`;
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
  if (row.event === "check") return row.ok ? (row.damage ? "damage" : "held") : "failed";
  if (row.kind === "refuses") return "refused";
  if (row.kind === "overwrites") return "damage";
  return row.kind === "stops" || row.kind === "over" || row.kind === "breaks" ? "warn" : "";
}

function xOf({ lanes }: Layout, lane: string): number {
  return TIME_WIDTH + ((lanes.indexOf(lane) + 0.5) * LANES_WIDTH) / lanes.length;
}

/** As narrow as lanes are when there are many. */
function nameLines(lane: string, count: number): readonly string[] {
  return wrapped(lane, Math.floor(LANES_WIDTH / count / NAME_WIDTH));
}

function colour({ lanes }: Layout, lane: string): string {
  if (serverLanes.includes(lane)) return `var(--${lane})`;
  const workers = lanes.filter((name) => !serverLanes.includes(name));
  return `var(--actor-${workers.indexOf(lane) % 5})`;
}
