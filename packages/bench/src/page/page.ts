// docs/performance.md and its pictures, from the results of a run and nothing else.
import { element, escaped, svgDocument } from "@palisade/testkit";
import { bestPeer } from "../measure/comparison.js";
import { isBusy, parseReport, type Report, type Result, type Row, shown } from "../measure/results.js";
import { goalRows, lossRows } from "./goals.js";

/** By the name of the file. */
export type Files = Readonly<Record<string, string>>;

interface Shown {
  readonly id: string;
  readonly key: string;
  readonly digits: number;
  readonly remark: string;
}

const p50 = { key: "p50Us", digits: 0, remark: "acquire + release, p50 in µs: shorter is better" };
const rate = { key: "perSecond", digits: 0, remark: "per second: longer is better" };
const fair = { key: "fairShares", digits: 1, remark: "longest wait over the fair share: shorter is better" };
const soon = { key: "p50Us", digits: 0, remark: "from release to the next holder, p50 in µs: shorter is better" };

const pictures: Readonly<Record<string, { readonly label: string; readonly shows: readonly Shown[] }>> = {
  "performance-lock.svg": {
    label: "Acquire and release beside other libraries",
    shows: [
      { id: "one-at-a-time", ...p50 },
      { id: "fresh-names", ...p50 },
      { id: "256-at-once", ...rate },
    ],
  },
  "performance-waiting.svg": {
    label: "Hand-over and fairness beside other libraries",
    shows: [
      { id: "handover", ...soon },
      { id: "handover-16", ...soon },
      { id: "handover-16", ...fair },
    ],
  },
  "performance-gateway.svg": {
    label: "The gateway beside hand-written servers",
    shows: ["puts/64", "gets/64", "hot-key", "transactions"].map((id) => ({ id, ...rate })),
  },
};

export function pageOf(text: string): Files {
  const report = parseReport(text);
  const drawings = Object.entries(pictures).flatMap(([file, { label, shows }]): [string, string][] => {
    const panels = shows.flatMap((show) => panel(report.results, show));
    return panels.length === 0 ? [] : [[file, chart(label, panels, noteOf(report))]];
  });
  return {
    "performance.md": markdown(
      report,
      drawings.map(([file]) => file),
    ),
    ...Object.fromEntries(drawings),
  };
}

/** A picture is also seen without its page. */
function noteOf({ startedAt, machine }: Report): string {
  const busy = isBusy(machine) ? ": other work ran beside this run" : "";
  return `${startedAt.slice(0, 10)}, ${machine.cores} × ${machine.processor}, load average ${machine.loadAverage[0]} at the start${busy}`;
}

function panel(results: readonly Result[], { id, key, digits, remark }: Shown): readonly Panel[] {
  const result = results.find((one) => one.id === id);
  if (result === undefined) return [];
  const bars = result.rows.flatMap(({ name, kind, figures }): readonly Bar[] => {
    const value = figures[key];
    return value === undefined ? [] : [{ name, kind, value }];
  });
  return [{ title: result.title, remark, digits, bars }];
}

function markdown(report: Report, drawings: readonly string[]): string {
  const { results } = report;
  const losses = lossRows(results);
  return [
    "# Performance",
    "",
    `Made by \`${report.command}\` of the commit named below, not by hand. Compare figures only within this run, and rather ratios and`,
    "processor times than times: rounds are taken in turns, figures are medians of rounds, ratios are taken within a round.",
    "[packages/bench](../packages/bench/README.md) says how it is measured and how to run it; `npm run bench -- --from",
    "docs/performance.json` prints every row of [performance.json](performance.json).",
    "",
    ...machineLines(report),
    "",
    "## Headlines",
    "",
    ...rows(["", "", "Palisade", "best other library or server"], headlines(results)),
    "",
    "## Goals",
    "",
    ...rows(["goal", "limit", "measured", ""], goalRows(report)),
    "",
    ...drawings.flatMap((file) => [`![${pictures[file]?.label ?? file}](${file})`, ""]),
    "## What Palisade loses",
    "",
    ...(losses.length === 0
      ? ["In no row of this run is another faster, or does another take less processor time."]
      : [
          "Every row of this run in which another is faster by more than 2 %, or takes less processor time in all processes together by more than 5 %.",
          "None of the other libraries gives tokens; which of the servers compare a token, their rows say.",
          "",
          ...rows(["", "who", "by how much"], losses),
        ]),
    "",
  ].join("\n");
}

function machineLines({ machine, versions, startedAt, tookSeconds, leftOut }: Report): readonly string[] {
  const facts = [
    ["date", `${startedAt.slice(0, 16).replace("T", " ")} UTC, ${Math.round(tookSeconds / 60)} minutes`],
    ["machine", `${machine.cores} × ${machine.processor}, ${machine.memoryGb} GB, ${machine.system}`],
    ["load average at the start", `${machine.loadAverage.join(", ")}${isBusy(machine) ? ": **other work ran beside this run**" : ""}`],
    ["processor times from", machine.processorTimes],
    [
      "versions",
      Object.entries(versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(", "),
    ],
    ["left out", leftOut.length === 0 ? "nothing" : leftOut.map((name) => `\`${name}\``).join(", ")],
  ];
  return rows(["", ""], facts);
}

/** What the pictures show, in figures; a longest wait says nothing without the rate. */
function headlines(results: readonly Result[]): readonly (readonly string[])[] {
  return Object.values(pictures).flatMap(({ shows }) =>
    shows.flatMap(({ id, key, digits, remark }) => {
      const result = results.find((one) => one.id === id);
      if (result === undefined || key === "fairShares") return [];
      const value = (row: Row | undefined): string => (row === undefined ? "–" : shown(row.figures[key], digits));
      const peer = bestPeer(result.rows, key);
      return [
        [
          result.title,
          remark.split(":")[0] ?? "",
          value(result.rows.find(({ kind }) => kind === "ours")),
          peer === undefined ? "–" : `${value(peer)} (${peer.name})`,
        ],
      ];
    }),
  );
}

function rows(titles: readonly string[], body: readonly (readonly string[])[]): readonly string[] {
  const line = (list: readonly string[]): string => `| ${list.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(titles), line(titles.map(() => "---")), ...body.map(line)];
}

// Pictures of results: a panel of horizontal bars for each, in one drawing that follows the light or dark
// scheme of its reader.

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly kind: "ours" | "peer" | "bound";
}

interface Panel {
  readonly title: string;
  /** What the length of a bar says, and which direction is good. */
  readonly remark: string;
  readonly digits: number;
  readonly bars: readonly Bar[];
}

const WIDTH = 900;
const LEFT = 300;
const RIGHT = 90;
const ROW = 22;
const HEAD = 52;
const GAP = 18;

const style = `svg{--surface:#fcfcfb;--ink:#1d1d1b;--muted:#6b6a64;--ours:#2a6fbb;--peer:#a9b4be;--bound:#d8dde1;color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{--surface:#16181c;--ink:#e9e8e4;--muted:#9b9a94;--ours:#6aa9ee;--peer:#5d6873;--bound:#363d44}}
text{font-family:system-ui,-apple-system,"Segoe UI","Liberation Sans",sans-serif;font-size:12px;fill:var(--muted)}
.surface{fill:var(--surface)}.title{font-size:15px;font-weight:600;fill:var(--ink)}.end{text-anchor:end}
.ours{fill:var(--ours)}.peer{fill:var(--peer)}.bound{fill:var(--bound)}text.ours{fill:var(--ink);font-weight:600}`;

const text = (kind: string | undefined, [x, y]: readonly [number, number], content: string): string =>
  element("text", { class: kind, x, y }, escaped(content));

function drawn({ title, remark, digits, bars }: Panel, top: number): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const rows = bars.map(({ name, value, kind }, i) => {
    const y = top + HEAD + i * ROW;
    const width = Math.max(1, ((WIDTH - LEFT - RIGHT) * value) / most);
    return [
      text(kind === "ours" ? "end ours" : "end", [LEFT - 10, y + 13], name),
      element("rect", { class: kind, x: LEFT, y: y + 2, width, height: ROW - 7, rx: 2 }),
      text(kind === "ours" ? "ours" : undefined, [LEFT + width + 6, y + 13], shown(value, digits)),
    ].join("\n");
  });
  return [text("title", [24, top + 22], title), text(undefined, [24, top + 40], remark), ...rows].join("\n");
}

function chart(label: string, panels: readonly Panel[], note: string): string {
  let height = GAP;
  const parts = panels.map((panel) => {
    const top = height;
    height += HEAD + panel.bars.length * ROW + GAP;
    return drawn(panel, top);
  });
  height += GAP;
  return svgDocument({ width: WIDTH, height, label, style }, [...parts, text(undefined, [24, height - GAP / 2], note)]);
}
