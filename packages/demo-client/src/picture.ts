// The run as one HTML page that needs nothing else: no script, no network, light and dark as the reader's system is. Decides the page; an act is drawn next door.
import { drawAct } from "./picture-act.js";
import { escaped } from "./picture-text.js";
import type { ActBegins, Audience, Check, ScenarioBegins, ScenarioEnds, Step, StoryEvent } from "./story-event.js";

interface DrawnAct {
  readonly begins: ActBegins;
  readonly rows: (Step | Check)[];
}

interface DrawnScenario {
  readonly begins: ScenarioBegins;
  readonly acts: DrawnAct[];
  end: ScenarioEnds | undefined;
}

/** Collects what happens; `html()` is the page so far. */
export class Picture implements Audience {
  readonly #scenarios: DrawnScenario[] = [];

  notice(event: StoryEvent): void {
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
${this.#scenarios.map(drawScenario).join("\n")}
</body>
</html>
`;
  }
}

function drawScenario({ begins, acts, end }: DrawnScenario): string {
  const verdict = end === undefined ? "" : `<p class="${end.ok ? "proven" : "differs"}">${end.ok ? "✓" : "✗"} ${escaped(end.proven)}</p>`;
  return `<section>
<h1>${escaped(begins.scenario)}</h1>
<p>${escaped(begins.about)} <span class="small">Leases of ${begins.ttlMs} ms; real processes, real servers.</span></p>
${acts.map(({ begins: act, rows }) => `<h2>${escaped(act.act)}</h2>\n${drawAct(act, rows)}`).join("\n")}
${verdict}
</section>`;
}

/** Shared by every drawing of the page. */
const patterns = `<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="stopped" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" class="stopped-ground"/><rect width="2.5" height="6" class="stopped-stripe"/></pattern>
</defs></svg>`;

const style = `
:root { color-scheme: light dark; --ground: #fff; --ink: #1c2128; --faint: #6a737d; --line: #c8ced6; --band: #f5f7f9; --good: #116329; --bad: #b3121d; --warn: #8a5a00;
  --actor-0: #0b62b8; --actor-1: #9a2f9e; --actor-2: #0a6e6e; --actor-3: #a04100; --actor-4: #5b4bc4; --lock: #7d5800; --gateway: #11702f; --store: #34495e; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161c; --ink: #e2e8ef; --faint: #98a2ae; --line: #3b4552; --band: #191f27; --good: #5fd383; --bad: #ff8078;
  --warn: #f0bd58; --actor-0: #69b4ff; --actor-1: #e493e8; --actor-2: #58d3d3; --actor-3: #ffa466; --actor-4: #b1a5ff; --lock: #e8c15c; --gateway: #6ddc8b; --store: #a9bdd1; } }
body { margin: 0 auto; padding: 24px; max-width: 1232px; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 24px 0 0; } h2 { font-size: 17px; margin: 24px 0 4px; } p { margin: 4px 0; } .small, .time { color: var(--faint); fill: var(--faint); }
svg.act { display: block; width: 100%; height: auto; font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
svg text { fill: var(--ink); } svg text.time { fill: var(--faint); } svg .name { font: 600 14px system-ui, sans-serif; fill: var(--lane); }
svg .band { fill: var(--band); } svg .lane { stroke: var(--line); stroke-width: 1.5; } svg .lease { fill: var(--lane); opacity: .85; }
svg .arrow { stroke: var(--lane); stroke-width: 1.8; } svg .head, svg .dot { fill: var(--lane); } svg .refused { --lane: var(--bad); } svg text.refused, svg text.failed { fill: var(--bad); font-weight: 700; }
svg text.warn { fill: var(--warn); } svg text.held { fill: var(--good); } .stopped-ground { fill: var(--ground); } .stopped-stripe { fill: var(--faint); }
.proven, .differs { margin: 20px 0 8px; padding: 10px 14px; border-left: 4px solid var(--good); background: var(--band); font-weight: 600; } .differs { border-color: var(--bad); }
`;
