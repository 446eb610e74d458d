// The run as one HTML page without scripts and network, light or dark as the reader's system.
import {
  type ActBegins,
  type Check,
  type DemoEvent,
  type ScenarioBegins,
  type ScenarioEnds,
  type Step,
  sentencesOf,
  serverLanes,
} from "./events.js";
import { wrapped } from "./lines.js";

type Row = Step | Check;

interface DrawnAct {
  readonly begins: ActBegins;
  readonly rows: Row[];
}

interface DrawnScenario {
  readonly begins: ScenarioBegins;
  readonly acts: DrawnAct[];
  end: ScenarioEnds | undefined;
}

/** Collects the events; `html()` is the page so far. */
export class Picture {
  readonly #scenarios: DrawnScenario[] = [];

  show(event: DemoEvent): void {
    const scenario = this.#scenarios.at(-1);
    if (event.event === "scenario") this.#scenarios.push({ begins: event, acts: [], end: undefined });
    else if (event.event === "act") scenario?.acts.push({ begins: event, rows: [] });
    else if (event.event === "end" && scenario !== undefined) scenario.end = event;
    else if (event.event === "step" || event.event === "check") scenario?.acts.at(-1)?.rows.push(event);
  }

  html(): string {
    const title = this.#scenarios.map(({ begins }) => begins.scenario).join(", ");
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
${patterns}
${this.#scenarios.length > 1 ? `<nav><ul>${this.#scenarios.map(entry).join("\n")}</ul></nav>` : ""}
${this.#scenarios.map(drawScenario).join("\n")}
</body>
</html>
`;
  }
}

/** One line of the contents of a page of several. */
function entry({ begins, end }: DrawnScenario): string {
  const verdict = end === undefined ? "" : end.ok ? '<b class="held">✓</b>' : '<b class="failed">✗</b>';
  const name = escaped(begins.scenario);
  return `<li>${verdict} <a href="#${name}">${name}</a> ${escaped(begins.about)}</li>`;
}

function drawScenario({ begins, acts, end }: DrawnScenario): string {
  const shared = sharedBy(acts);
  const drawn = acts.map((act) => {
    const [, control, title = ""] = /^(control: )?(.*)$/.exec(act.begins.act) ?? [];
    const role = control === undefined ? "measure" : "control";
    const badge = role === "control" ? '<span class="badge">control</span> ' : "";
    return `<div class="${role}"><h2>${badge}${escaped(title)}</h2>\n${drawAct(act, shared)}</div>`;
  });
  return `<section id="${escaped(begins.scenario)}">
<h1>${escaped(begins.scenario)}</h1>
<p>${escaped(begins.about)} <span class="small">Leases of ${begins.ttlMs} ms; real processes, real servers.</span></p>
${end === undefined ? "" : drawVerdict(end)}
${legend}
${drawn.join("\n")}
</section>`;
}

function drawVerdict({ ok, proven }: ScenarioEnds): string {
  const lines = sentencesOf(proven).map((sentence) => `${ok ? "✓" : "✗"} ${escaped(sentence)}`);
  return `<p class="${ok ? "proven" : "differs"}">${lines.join("<br>")}</p>`;
}

const refusedSign = `<g class="refuses"><line class="arrow" x1="0" x2="20" y1="7" y2="7"/>
<path class="cross" d="M14 1l12 12m0 -12l-12 12"/></g>`;

const overwritesSign = `<g class="overwrites"><line class="arrow" x1="0" x2="18" y1="7" y2="7"/>
<path class="head" d="M26 7l-10 -5v10z"/></g>`;

/** What the signs of the drawings mean. */
const legend = `<p class="legend">${[
  [
    '<rect class="lease" x="0" y="2" width="20" height="10" rx="2"/><line class="end" x1="20" x2="20" y1="0" y2="14"/>',
    "holds a lease, to its end",
  ],
  ['<rect fill="url(#stopped)" class="lane" x="0" y="1" width="26" height="12" rx="3"/>', "stands still"],
  [refusedSign, "is refused"],
  [overwritesSign, "replaces an update that it never saw"],
]
  .map(([sign, meaning]) => `<span><svg class="act sign" viewBox="-1 0 29 14" aria-hidden="true">${sign}</svg>${meaning}</span>`)
  .join("")}<span><b class="held">✓</b>true, as the scenario claims</span>
<span><b class="damage">✗</b>damage that the control shows</span></p>`;

/** Shared by every drawing of the page. */
const patterns = `<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="stopped" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" class="stopped-ground"/><rect width="2.5" height="6" class="stopped-stripe"/></pattern>
</defs></svg>`;

/** One set of colours for light, one for dark. */
const style = `
:root { color-scheme: light dark;
  --ground: #fff; --ink: #1c2128; --faint: #6a737d; --line: #c8ced6; --band: #f5f7f9;
  --good: #116329; --bad: #b3121d; --warn: #8a5a00;
  --actor-0: #0b62b8; --actor-1: #9a2f9e; --actor-2: #0a6e6e; --actor-3: #a04100; --actor-4: #5b4bc4;
  --lock: #7d5800; --gateway: #11702f; --store: #34495e; }
@media (prefers-color-scheme: dark) { :root {
  --ground: #12161c; --ink: #e2e8ef; --faint: #98a2ae; --line: #3b4552; --band: #191f27;
  --good: #5fd383; --bad: #ff8078; --warn: #f0bd58;
  --actor-0: #69b4ff; --actor-1: #e493e8; --actor-2: #58d3d3; --actor-3: #ffa466; --actor-4: #b1a5ff;
  --lock: #e8c15c; --gateway: #6ddc8b; --store: #a9bdd1; } }
body { margin: 0 auto; padding: 24px; max-width: 1232px; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 24px 0 0; }
h2 { font-size: 17px; margin: 24px 0 4px; }
p { margin: 4px 0; }
.small, .time { color: var(--faint); fill: var(--faint); }
svg.act { display: block; width: 100%; height: auto;
  font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
svg text { fill: var(--ink); }
svg text.time { fill: var(--faint); }
svg .name { font: 600 14px system-ui, sans-serif; fill: var(--lane); }
svg .band { fill: var(--band); }
svg .lane { stroke: var(--line); stroke-width: 1.5; }
svg .lease { fill: var(--lane); opacity: .85; }
svg .arrow { stroke: var(--lane); stroke-width: 1.8; }
svg .head, svg .dot { fill: var(--lane); }
svg .dot { stroke: var(--ground); stroke-width: 1.5; }
svg .cross { stroke: var(--lane); stroke-width: 2.6; fill: none; }
.refuses, .overwrites { --lane: var(--bad); }
svg .overwrites .arrow { stroke-width: 4; }
svg .end { stroke: var(--ink); stroke-width: 3; }
svg text.refused, svg text.failed, svg text.damage { fill: var(--bad); font-weight: 700; }
svg text.warn { fill: var(--warn); }
svg text.held { fill: var(--good); font-weight: 600; }
svg .name.small-name { font-size: 12px; }
@media (max-width: 760px) { body { padding: 12px; } nav ul { columns: 1; } }
nav ul { list-style: none; padding: 0; columns: 2; font-size: 14px; }
nav li { break-inside: avoid; padding-left: 1.2em; text-indent: -1.2em; }
nav a { color: inherit; font-weight: 600; }
section { padding-top: 1px; }
section + section { border-top: 1px solid var(--line); margin-top: 40px; }
b.failed, b.damage { color: var(--bad); }
b.held { color: var(--good); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 24px; margin: 10px 0 0; font-size: 13px;
  color: var(--faint); --lane: var(--actor-0); }
.legend span { display: inline-flex; align-items: center; gap: 7px; }
svg.act.sign { display: inline-block; width: 29px; height: 14px; }
.badge { font-size: 12px; font-weight: 600; letter-spacing: .04em; padding: 2px 8px; border-radius: 9px;
  color: var(--ground); background: var(--warn); vertical-align: 2px; }
.stopped-ground { fill: var(--ground); }
.stopped-stripe { fill: var(--faint); }
.proven, .differs { margin: 20px 0 8px; padding: 10px 14px; border-left: 4px solid var(--good);
  background: var(--band); font-weight: 600; }
.differs { border-color: var(--bad); }
`;

// One act as an SVG drawing: a lane per worker and server from top to bottom, a row per event, a
// bar where a lease is held up to a mark at its end, hatching beside it where a process stands
// still. Lanes stand in the same place in every act of a scenario. Rows have equal height, because
// what matters happens within milliseconds and waiting takes seconds; the time stands beside each.

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

/** What all acts of a scenario share. */
interface Shared {
  readonly lanes: readonly string[];
  /** A text with the scenario's tokens cut to what differs. */
  readonly cut: (text: string) => string;
}

function sharedBy(acts: readonly DrawnAct[]): Shared {
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

function drawAct(drawn: DrawnAct, shared: Shared): string {
  const layout = arrange(drawn, shared);
  const bands = layout.rows.filter((_, index) => index % 2 === 0);
  const parts = [
    ...bands.map(({ top, height }) => element("rect", { class: "band", x: 0, y: top, width: WIDTH, height })),
    ...layout.drawn.map((lane) => drawLane(layout, lane)),
    ...layout.rows.map((placed, index) => drawRow(layout, placed, index)),
  ];
  const label = drawn.begins.act;
  return element("svg", { class: "act", viewBox: `0 0 ${WIDTH} ${layout.height}`, role: "img", "aria-label": label }, parts.join("\n"));
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
  const stops = spans(layout, lane, ["stops", "resumes"]).map(({ from, to }) =>
    element("rect", { fill: "url(#stopped)", class: "lane", x: x - 11, y: from, width: 22, height: to - from, rx: 3 }),
  );
  const bars = spans(layout, lane, ["holds", "over"]).map(({ from, to, ends }) => {
    const bar = element("rect", { class: "lease", x: x - 5, y: from, width: 10, height: to - from, rx: 2 });
    return ends ? bar + element("line", { class: "end", x1: x - 17, x2: x + 17, y1: to, y2: to }) : bar;
  });
  const lines = nameLines(lane, layout.lanes.length);
  const top = layout.headHeight - 14 - (lines.length - 1) * NAME_LINE_HEIGHT;
  const kind = layout.lanes.length > 6 ? "name small-name" : "name";
  const name = element("text", { class: kind, "text-anchor": "middle" }, textLines(lines, [x, top], NAME_LINE_HEIGHT));
  const line = element("line", { class: "lane", x1: x, x2: x, y1: layout.headHeight - 6, y2: layout.height - 4 });
  return element("g", { style: `--lane:${colour(layout, lane)}` }, [name, line, ...stops, ...bars].join(""));
}

function textLines(lines: readonly string[], [x, y]: readonly [number, number], lineHeight: number): string {
  return lines.map((line, number) => element("tspan", { x, y: y + number * lineHeight }, escaped(line))).join("");
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
  const seconds = `${(row.atMs / 1_000).toFixed(3)} s`;
  const time = element("text", { class: "time", x: TIME_WIDTH - 12, y: y + 4.5, "text-anchor": "end" }, seconds);
  const label = time + element("text", { class: textClass(row) }, textLines(lines, [TEXT_START, y + 4.5], LINE_HEIGHT));
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
  const dot = (r: number): string => element("circle", { class: "dot", cx: start, cy: y, r });
  const group = (inside: string): string => element("g", { class: kind, style: `--lane:${dyes[kind] ?? colour(layout, from)}` }, inside);
  if (to === undefined) return group(dot(5));
  const end = xOf(layout, to);
  const side = end > start ? -1 : 1;
  const line = element("line", { class: "arrow", x1: start, y1: y, x2: end + side * 8, y2: y });
  const head = element("path", { class: "head", d: `M${end} ${y}l${side * 10} -5v10z` });
  const cross = element("path", { class: "cross", d: `M${end - 6} ${y - 6}l12 12m0 -12l-12 12` });
  return group(line + dot(4) + (kind === "refuses" ? cross : head));
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

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** For HTML and SVG: nothing in the text is markup. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

type Attributes = Readonly<Record<string, string | number | undefined>>;

/** An element with what is inside of it, which is markup; numbers have one decimal at most. */
function element(name: string, attributes: Attributes, inside?: string): string {
  const written = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${typeof value === "number" ? Math.round(value * 10) / 10 : escaped(value)}"`],
  );
  return inside === undefined ? `<${name}${written.join("")}/>` : `<${name}${written.join("")}>${inside}</${name}>`;
}
