// docs/performance.md, from the results of a run and nothing else.
import { bestPeer } from "../measure/comparison.js";
import { isBusy, parseReport, type Report, type Result, type Row, shown } from "../measure/results.js";
import { goalRows, lossRows } from "./goals.js";

interface Headline {
  readonly id: string;
  readonly key: string;
  readonly remark: string;
}

const p50 = { key: "p50Us", remark: "acquire + release, p50 in µs" };
const rate = { key: "perSecond", remark: "per second" };
const soon = { key: "p50Us", remark: "from release to the next holder, p50 in µs" };

const shownFirst: readonly Headline[] = [
  { id: "one-at-a-time", ...p50 },
  { id: "fresh-names", ...p50 },
  { id: "256-at-once", ...rate },
  { id: "handover", ...soon },
  { id: "handover-16", ...soon },
  ...["puts/64", "gets/64", "hot-key", "transactions"].map((id) => ({ id, ...rate })),
];

export function pageOf(text: string): string {
  const report = parseReport(text);
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

function headlines(results: readonly Result[]): readonly (readonly string[])[] {
  return shownFirst.flatMap(({ id, key, remark }) => {
    const result = results.find((one) => one.id === id);
    if (result === undefined) return [];
    const value = (row: Row | undefined): string => (row === undefined ? "–" : shown(row.figures[key], 0));
    const peer = bestPeer(result.rows, key);
    const ours = value(result.rows.find(({ kind }) => kind === "ours"));
    return [[result.title, remark, ours, peer === undefined ? "–" : `${value(peer)} (${peer.name})`]];
  });
}

function rows(titles: readonly string[], body: readonly (readonly string[])[]): readonly string[] {
  const line = (list: readonly string[]): string => `| ${list.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(titles), line(titles.map(() => "---")), ...body.map(line)];
}
