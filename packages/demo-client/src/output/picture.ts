// The run as one HTML page without scripts and network, light or dark as the reader's system.
import { escaped } from "@palisade/testkit";
import type { ActBegins, Check, DemoEvent, Output, ScenarioBegins, ScenarioEnds, Step } from "./events.js";
import { drawAct, sharedBy } from "./picture-act.js";

interface DrawnAct {
  readonly begins: ActBegins;
  readonly rows: (Step | Check)[];
}

interface DrawnScenario {
  readonly begins: ScenarioBegins;
  readonly acts: DrawnAct[];
  end: ScenarioEnds | undefined;
}

/** Collects the events; `html()` is the page so far. */
export class Picture implements Output {
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
${legend}
${drawn.join("\n")}
${end === undefined ? "" : drawVerdict(end)}
</section>`;
}

function drawVerdict({ ok, proven }: ScenarioEnds): string {
  return `<p class="${ok ? "proven" : "differs"}">${ok ? "✓" : "✗"} ${escaped(proven)}</p>`;
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
