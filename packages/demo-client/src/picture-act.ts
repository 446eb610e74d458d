// One act as a drawing: a lane per actor from top to bottom, a row per thing that happened, a bar where a lease is held, hatching where a process stands still.
// Lanes stand where they stand in every act of the scenario, so that acts can be compared. Rows have equal height, because what matters happens within milliseconds
// and waiting takes seconds; the time stands beside each.
import { escaped } from "./picture-text.js";
import type { ActBegins, Check, Step } from "./story-event.js";
import { wrapped } from "./wording.js";

type Row = Step | Check;

const width = 1232;
const timeWidth = 78;
const lanesWidth = 520;
const textStart = timeWidth + lanesWidth + 8;
const textColumns = 76;
const rowHeight = 25;
const lineHeight = 17;
const headHeight = 34;
const nameLineHeight = 16;
const nameCharacterWidth = 8.6;

/** Where everything goes. */
interface Layout {
  /** Those of the whole scenario; this act's own are drawn. */
  readonly lanes: readonly string[];
  readonly drawn: readonly string[];
  readonly headHeight: number;
  readonly rows: readonly { readonly row: Row; readonly lines: readonly string[]; readonly top: number; readonly height: number }[];
  readonly height: number;
}

export interface DrawnAct {
  readonly begins: ActBegins;
  readonly rows: readonly Row[];
}

/** The lanes of a whole scenario, in an order that suits each act: workers as they appear, then what they ask. */
export function lanesOf(acts: readonly DrawnAct[]): readonly string[] {
  const all = new Set(acts.flatMap((act) => lanesOfOne(act)));
  const asked = ["lock", "gateway", "store"].filter((lane) => all.has(lane));
  return [...[...all].filter((lane) => !asked.includes(lane)), ...asked];
}

function lanesOfOne({ begins, rows }: DrawnAct): readonly string[] {
  const spoken = rows.flatMap((row) => (row.event === "step" ? [row.from, ...(row.to === undefined ? [] : [row.to])] : []));
  return [...new Set([...begins.actors, ...spoken])];
}

export function drawAct(drawn: DrawnAct, lanes: readonly string[]): string {
  const layout = arrange(drawn, lanes);
  const { act } = drawn.begins;
  const { height } = layout;
  return `<svg class="act" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(act)}">
${layout.rows.map(({ top, height: tall }, index) => (index % 2 === 0 ? `<rect class="band" x="0" y="${top}" width="${width}" height="${tall}"/>` : "")).join("")}
${layout.drawn.map((lane) => drawLane(layout, lane)).join("\n")}
${layout.rows.map((_, index) => drawRow(layout, index)).join("\n")}
</svg>`;
}

function arrange(act: DrawnAct, lanes: readonly string[]): Layout {
  const { rows } = act;
  const names = lanes.map((lane) => nameLines(lane, lanes.length).length);
  const head = headHeight + (Math.max(1, ...names) - 1) * nameLineHeight;
  let top = head;
  const placed = rows.map((row) => {
    const lines = wrapped(row.event === "step" ? row.text : `${row.ok ? "✓" : "✗"} ${row.claim}`, textColumns);
    const height = rowHeight + (lines.length - 1) * lineHeight;
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
    const y = layout.headHeight - 14 - (lines.length - 1 - number) * nameLineHeight;
    return `<tspan x="${x}" y="${y}">${escaped(line)}</tspan>`;
  });
  return `<g style="--lane:${colour(layout, lane)}"><text class="name${layout.lanes.length > 6 ? " narrow" : ""}" text-anchor="middle">${name.join("")}</text>
<line class="lane" x1="${x}" x2="${x}" y1="${layout.headHeight - 6}" y2="${layout.height - 4}"/>${bars.join("")}${stops.join("")}</g>`;
}

/** From each row of the first kind in this lane to the next of the second, or to the end. */
function* spans(layout: Layout, lane: string, [first, last]: readonly [Step["kind"], Step["kind"]]): Generator<readonly [number, number]> {
  let from: number | undefined;
  for (const { row, top } of layout.rows) {
    if (row.event !== "step" || row.from !== lane) continue;
    if (row.kind === first) from ??= top + rowHeight / 2;
    if (row.kind !== last || from === undefined) continue;
    yield [from, top + rowHeight / 2];
    from = undefined;
  }
  if (from !== undefined) yield [from, layout.height - 4];
}

function drawRow(layout: Layout, index: number): string {
  const place = layout.rows[index];
  if (place === undefined) return "";
  const { row, lines, top } = place;
  const y = top + rowHeight / 2;
  const text = lines
    .map((line, number) => `<tspan x="${textStart}" y="${y + 4.5 + number * lineHeight}">${escaped(line)}</tspan>`)
    .join("");
  const time = `<text class="time" x="${timeWidth - 18}" y="${y + 4.5}" text-anchor="end">${(row.atMs / 1_000).toFixed(3)} s</text>`;
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
  const line = `<line class="arrow" x1="${start}" y1="${y}" x2="${end + side * 8}" y2="${y}"/><circle class="dot" cx="${start}" cy="${y}" r="4"/>`;
  const head = `<path class="head" d="M${end} ${y}l${side * 10} -5v10z"/>`;
  const cross = `<path class="cross" d="M${end - 6} ${y - 6}l12 12m0 -12l-12 12"/>`;
  return group(line + (kind === "refuses" ? cross : head));
}

function textClass(row: Row): string {
  if (row.event === "check") return row.ok ? "held" : "failed";
  if (row.kind === "refuses") return "refused";
  return row.kind === "stops" || row.kind === "over" || row.kind === "breaks" ? "warn" : "";
}

function xOf({ lanes }: Layout, lane: string): number {
  return timeWidth + ((lanes.indexOf(lane) + 0.5) * lanesWidth) / lanes.length;
}

/** As narrow as lanes are when there are many. */
function nameLines(lane: string, count: number): readonly string[] {
  return wrapped(lane, Math.floor(lanesWidth / count / nameCharacterWidth));
}

function colour({ lanes }: Layout, lane: string): string {
  if (["lock", "gateway", "store"].includes(lane)) return `var(--${lane})`;
  const workers = lanes.filter((name) => !["lock", "gateway", "store"].includes(name));
  return `var(--actor-${workers.indexOf(lane) % 5})`;
}
