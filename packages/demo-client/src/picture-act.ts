// One act as a drawing: a lane per actor from top to bottom, a row per thing that happened, a bar where a lease is held, hatching where a process stands still.
// Rows have equal height, because what matters happens within milliseconds and waiting takes seconds; the time stands beside each.
import { escaped, wrapped } from "./picture-text.js";
import type { ActBegins, Check, Step } from "./story-event.js";

type Row = Step | Check;

const width = 1232;
const timeWidth = 78;
const lanesWidth = 520;
const textStart = timeWidth + lanesWidth + 8;
const textColumns = 76;
const rowHeight = 25;
const lineHeight = 17;
const headHeight = 34;

/** Where everything goes. */
interface Layout {
  readonly lanes: readonly string[];
  readonly rows: readonly { readonly row: Row; readonly lines: readonly string[]; readonly top: number; readonly height: number }[];
  readonly height: number;
}

export function drawAct({ act, actors }: ActBegins, rows: readonly Row[]): string {
  const layout = arrange(actors, rows);
  const { lanes, height } = layout;
  return `<svg class="act" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(act)}">
${layout.rows.map(({ top, height: tall }, index) => (index % 2 === 0 ? `<rect class="band" x="0" y="${top}" width="${width}" height="${tall}"/>` : "")).join("")}
${lanes.map((lane) => drawLane(layout, lane)).join("\n")}
${layout.rows.map((_, index) => drawRow(layout, index)).join("\n")}
</svg>`;
}

function arrange(actors: readonly string[], rows: readonly Row[]): Layout {
  const spoken = rows.flatMap((row) => (row.event === "step" ? [row.from, ...(row.to === undefined ? [] : [row.to])] : []));
  const lanes = [...new Set([...actors, ...spoken])];
  let top = headHeight;
  const placed = rows.map((row) => {
    const lines = wrapped(row.event === "step" ? row.text : `${row.ok ? "✓" : "✗"} ${row.claim}`, textColumns);
    const height = rowHeight + (lines.length - 1) * lineHeight;
    const place = { row, lines, top, height };
    top += height;
    return place;
  });
  return { lanes, rows: placed, height: top + 8 };
}

function drawLane(layout: Layout, lane: string): string {
  const x = xOf(layout, lane);
  const bars = [...spans(layout, lane, ["holds", "over"])].map(
    ([from, to]) => `<rect class="lease" x="${x - 4}" y="${from}" width="8" height="${to - from}" rx="3"/>`,
  );
  const stops = [...spans(layout, lane, ["stops", "resumes"])].map(
    ([from, to]) => `<rect fill="url(#stopped)" class="lane" x="${x - 7}" y="${from}" width="14" height="${to - from}" rx="3"/>`,
  );
  return `<g style="--lane:${colour(layout, lane)}"><text class="name" x="${x}" y="20" text-anchor="middle">${escaped(lane)}</text>
<line class="lane" x1="${x}" x2="${x}" y1="${headHeight - 6}" y2="${layout.height - 4}"/>${bars.join("")}${stops.join("")}</g>`;
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
  const group = (inside: string): string =>
    `<g class="${kind === "refuses" ? "refused" : ""}"${kind === "refuses" ? "" : ` style="--lane:${colour(layout, from)}"`}>${inside}</g>`;
  if (to === undefined) return group(`<circle class="dot" cx="${start}" cy="${y}" r="5"/>`);
  const end = xOf(layout, to);
  const side = end > start ? -1 : 1;
  const line = `<line class="arrow" x1="${start}" y1="${y}" x2="${end + side * 8}" y2="${y}"/><circle class="dot" cx="${start}" cy="${y}" r="3.5"/>`;
  const head = `<path class="head" d="M${end} ${y}l${side * 10} -5v10z"/>`;
  const cross = `<path class="arrow" d="M${end + side * 14} ${y - 6}l12 12m0 -12l-12 12" transform="translate(-6 0)"/>`;
  return group(kind === "refuses" ? line + head + cross : line + head);
}

function textClass(row: Row): string {
  if (row.event === "check") return row.ok ? "held" : "failed";
  if (row.kind === "refuses") return "refused";
  return row.kind === "stops" || row.kind === "over" || row.kind === "breaks" ? "warn" : "";
}

function xOf({ lanes }: Layout, lane: string): number {
  return timeWidth + ((lanes.indexOf(lane) + 0.5) * lanesWidth) / lanes.length;
}

function colour({ lanes }: Layout, lane: string): string {
  if (["lock", "gateway", "store"].includes(lane)) return `var(--${lane})`;
  const workers = lanes.filter((name) => !["lock", "gateway", "store"].includes(name));
  return `var(--actor-${workers.indexOf(lane) % 5})`;
}
