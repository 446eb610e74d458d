// docs/performance.md, from the results of a run and nothing else.
import { bestPeer } from "./measure/comparison.js";
import { isBusy, parseReport, type Report, type Result, type Row, ratioOf, rowOf, shown } from "./measure/results.js";

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

// The goals of speed, each judged by the ratios of one run; and where another is faster, or takes less processor time:
// found in the results, not chosen.

const LOCK = "@palisade/lock";
const GATEWAY = "@palisade/gateway";
const EXPRESS = "Express 5 + pg";
const CYCLE = "withResource";
const PUT = "client.put";
const FASTIFY = "Fastify 5 + pg";
const BY_HAND = "redlock 5, Express 5 + pg";
const PIPELINED = ", auto-pipelining";

type Results = ReadonlyMap<string, Result>;

type Measured = (results: Results) => number | undefined;

type Goal = readonly [goal: string, bound: string, measured: Measured];

const ratio = (id: string, key: string, names: readonly [string, string]) => (results: Results) => ratioOf(results.get(id), key, names);

const figure = (results: Results, id: string, [name, key]: readonly [string, string]): number | undefined =>
  rowOf(results.get(id), name)?.figures[key];

/** The worst of several; undefined unless all were measured. */
function worst(values: readonly (number | undefined)[], of: "largest" | "smallest"): number | undefined {
  const known = values.filter((value): value is number => value !== undefined);
  if (known.length < values.length) return undefined;
  return of === "largest" ? Math.max(...known) : Math.min(...known);
}

function againstBestPeer(id: string, key: "p50Us" | "perSecond", fits: (row: Row) => boolean = () => true) {
  return (results: Results): number | undefined => {
    const result = results.get(id);
    const best = bestPeer(result?.rows.filter(fits) ?? [], key);
    return best === undefined ? undefined : ratioOf(result, key, [LOCK, best.name]);
  };
}

const crowds = (key: string) => (results: Results) =>
  worst(
    [2, 4, 16].map((size) => figure(results, `handover-${size}`, [LOCK, key])),
    "largest",
  );

const isPipelined = ({ name }: Row): boolean => name.endsWith(PIPELINED);

const faulty = (condition: string, atOnce: 1 | 64) => {
  const names = [`${LOCK}, ${condition}`, `${LOCK}, all nodes well`] as const;
  return atOnce === 1 ? ratio("faulty-nodes/1", "p50Us", names) : ratio("faulty-nodes/64", "perSecond", [names[1], names[0]]);
};

function coresOfWaiters(results: Results): number | undefined {
  const [client, redis] = ["clientCore", "redisCore"].map((key) => figure(results, "idle-waiters/1000", [LOCK, key]));
  return client === undefined || redis === undefined ? undefined : client + redis;
}

/** Processor time of server and Postgres per PUT, in the largest table over the smallest. */
function costOfGrowth(results: Results): number | undefined {
  const rows = (results.get("largest-table/put") ?? results.get("table-size/put"))?.rows ?? [];
  const cost = (row: Row | undefined): number => (row?.figures.serverUs ?? Number.NaN) + (row?.figures.postgresUs ?? Number.NaN);
  const value = cost(rows.at(-1)) / cost(rows[0]);
  return Number.isFinite(value) ? value : undefined;
}

const worstOfSizes = (results: Results): number | undefined =>
  worst(
    ["0.1-kB", "1-kB", "10-kB", "100-kB"].map((size) => ratioOf(results.get(`sizes/${size}`), "perSecond", [GATEWAY, EXPRESS])),
    "smallest",
  );

const goals: readonly Goal[] = [
  ["one at a time, p50 × best peer", "≤ 1 ×", againstBestPeer("one-at-a-time", "p50Us")],
  ["names never locked before, p50 × best peer", "≤ 1 ×", againstBestPeer("fresh-names", "p50Us")],
  [
    "256 at once, rate × best peer without auto-pipelining",
    "≥ 5 ×",
    againstBestPeer("256-at-once", "perSecond", (row) => !isPipelined(row)),
  ],
  ["256 at once, rate × best peer with auto-pipelining", "≥ 3 ×", againstBestPeer("256-at-once", "perSecond", isPipelined)],
  ["one node stopped, one at a time: p50 × all well", "≤ 1.05 ×", faulty("one node stopped", 1)],
  ["one node dead, one at a time: p50 × all well", "≤ 1.05 ×", faulty("one node dead", 1)],
  ["one node slow, one at a time: p50 × all well", "≤ 1.05 ×", faulty("one node slow", 1)],
  ["one node dead, 64 at once: rate of all well × this", "≤ 1.10 ×", faulty("one node dead", 64)],
  ["one node slow, 64 at once: rate of all well × this", "≤ 1.10 ×", faulty("one node slow", 64)],
  ["hand-over p50, worst of 2, 4 and 16 processes", "≤ 2 000 µs", crowds("p50Us")],
  ["longest wait × fair share, worst of 2, 4 and 16 processes", "≤ 3 ×", crowds("fairShares")],
  ["commands per hand-over and node, worst of 2, 4 and 16 processes", "≤ 4.3", crowds("commands")],
  [
    "16 callers of one process on one lock: the nodes' time × one caller",
    "≤ 2 ×",
    ratio("hot-local", "redisUs", [LOCK, `${LOCK}, one caller`]),
  ],
  ["the whole cycle, 16 at once: rate × redlock 5, Express and pg by hand", "≥ 0.90 ×", ratio("cycle/16", "perSecond", [CYCLE, BY_HAND])],
  ["client.put, processor time of the client × bare node:http", "≤ 2 ×", ratio("client-put/1", "clientUs", [PUT, "node:http"])],
  ["1 000 idle waiters, client and nodes together", "≤ 5 % of a core", coresOfWaiters],
  ["fenced PUT over 64 connections, rate × Express", "≥ 3 ×", ratio("puts/64", "perSecond", [GATEWAY, EXPRESS])],
  ["fenced PUT over 64 connections, rate × Fastify", "≥ 1.50 ×", ratio("puts/64", "perSecond", [GATEWAY, FASTIFY])],
  ["fenced PUT over one connection, rate × Express", "≥ 1 ×", ratio("puts/1", "perSecond", [GATEWAY, EXPRESS])],
  ["fenced PUT of one resource, rate × Express", "≥ 5 ×", ratio("hot-key", "perSecond", [GATEWAY, EXPRESS])],
  ["GET over 64 connections, rate × Express", "≥ 1.50 ×", ratio("gets/64", "perSecond", [GATEWAY, EXPRESS])],
  ["GET over one connection, rate × Express", "≥ 1 ×", ratio("gets/1", "perSecond", [GATEWAY, EXPRESS])],
  ["PUT of 0.1, 1, 10 and 100 kB, rate × Express, worst", "≥ 1 ×", worstOfSizes],
  [
    "transactions of 100, rate × one hand-written fenced statement",
    "≥ 0.50 ×",
    ratio("transactions", "perSecond", [GATEWAY, "node:http + pg, fenced unnest"]),
  ],
  ["processor time of a PUT, largest table × 1 000 resources", "≤ 1.30 ×", costOfGrowth],
];

const BOUND = /^([≤≥]) ([\d .]*\d)(?: (.+))?$/;

/** Nothing is called kept or missed after a run on a busy machine. */
function goalRows({ results: list, machine }: Pick<Report, "results" | "machine">): readonly (readonly string[])[] {
  const results = new Map(list.map((result) => [result.id, result]));
  return goals.map(([goal, bound, measured]) => {
    const [, sign, digitsOfLimit = "", unit = ""] = BOUND.exec(bound) ?? [];
    const limit = Number(digitsOfLimit.replaceAll(" ", ""));
    const value = measured(results);
    if (value === undefined) return [goal, bound, "–", "not in this run"];
    const digits = unit === "µs" ? 0 : limit % 1 !== 0 || unit === "×" ? 2 : 1;
    // Judged as it is shown.
    const rounded = Number(value.toFixed(digits));
    const isKept = sign === "≤" ? rounded <= limit : rounded >= limit;
    const verdict = isBusy(machine) ? "not judged, the machine was busy" : isKept ? "kept" : "**missed**";
    return [goal, bound, `${shown(value, digits)}${unit === "" ? "" : ` ${unit}`}`, verdict];
  });
}

/** Less than that is noise. */
const NOISE = 1.02;
const NOISE_OF_PROCESSOR = 1.05;
const roles = ["clientUs", "redisUs", "serverUs", "postgresUs", "workersUs"];

const nameOf = ({ name, kind }: Row): string => (kind === "bound" ? `${name} (a bound, no product)` : name);

/** Rows of a table: what is measured, who is better, by how much. */
export function lossRows(results: readonly Result[]): readonly (readonly string[])[] {
  return results.flatMap((result) => {
    const own = result.rows.find(({ name }) => [LOCK, GATEWAY, CYCLE, PUT].includes(name));
    if (own === undefined || result.compared === undefined) return [];
    const { compared } = result;
    return result.rows
      .filter(({ kind }) => kind !== "ours")
      .flatMap((row) => {
        const ratio = ratioOf(result, compared, compared === "p50Us" ? [own.name, row.name] : [row.name, own.name]);
        const processor = processorOf(own) / processorOf(row);
        const losses = [
          ...(ratio !== undefined && ratio > NOISE ? [`${compared === "p50Us" ? "p50" : "rate"} ${shown(ratio, 2)} × better`] : []),
          ...(processor > NOISE_OF_PROCESSOR ? [`processor time ${shown(processor, 2)} × less`] : []),
        ];
        return losses.length === 0 ? [] : [[result.title, nameOf(row), losses.join(", ")]];
      });
  });
}

/** Of all processes together, per operation. */
function processorOf({ figures }: Row): number {
  return roles.reduce((total, role) => total + (figures[role] ?? 0), 0);
}
