// The goals of speed, each judged by the ratios of one run. A missed one says why, as far as known.
import { bestPeer } from "../measure/comparison.js";
import { isBusy, type Report, type Result, type Row, ratioOf, rowOf } from "../measure/results.js";
import { shown } from "../measure/text.js";

export const LOCK = "@palisade/lock";
export const GATEWAY = "@palisade/gateway";
const FLOOR = "floor: EVALSHA, majority";
const EXPRESS = "Express 5 + pg";
const FASTIFY = "Fastify 5 + pg";
const PIPELINED = ", auto-pipelining";

export type Results = ReadonlyMap<string, Result>;

interface Goal {
  readonly goal: string;
  readonly sign: "≤" | "≥";
  readonly limit: number;
  readonly unit: string;
  measured(results: Results): number | undefined;
  /** What a profile says, if it is missed. */
  readonly why?: string;
}

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

const crowds = (key: string, sizes: readonly number[]) => (results: Results) =>
  worst(
    sizes.map((size) => figure(results, `handover-${size}`, [LOCK, key])),
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

const sizes = ["0.1-kB", "1-kB", "10-kB", "100-kB"];

export const goals: readonly Goal[] = [
  { goal: "one at a time, p50 × floor", sign: "≤", limit: 1.05, unit: "×", measured: ratio("one-at-a-time", "p50Us", [LOCK, FLOOR]) },
  {
    goal: "names never locked before, p50 × floor",
    sign: "≤",
    limit: 1.05,
    unit: "×",
    measured: ratio("fresh-names", "p50Us", [LOCK, FLOOR]),
  },
  { goal: "one at a time, p50 × best peer", sign: "≤", limit: 1, unit: "×", measured: againstBestPeer("one-at-a-time", "p50Us") },
  { goal: "names never locked before, p50 × best peer", sign: "≤", limit: 1, unit: "×", measured: againstBestPeer("fresh-names", "p50Us") },
  {
    goal: "second rounds, 4 processes, names never locked before",
    ...{ sign: "≤", limit: 5, unit: "%" },
    measured: (results) => figure(results, "processes/4-fresh", [LOCK, "secondRounds"]),
  },
  {
    goal: "256 at once, rate × best peer without auto-pipelining",
    ...{ sign: "≥", limit: 5, unit: "×" },
    measured: againstBestPeer("256-at-once", "perSecond", (row) => !isPipelined(row)),
  },
  {
    goal: "256 at once, rate × best peer with auto-pipelining",
    ...{ sign: "≥", limit: 3, unit: "×" },
    measured: againstBestPeer("256-at-once", "perSecond", isPipelined),
  },
  { goal: "one node dead, one at a time: p50 × all well", sign: "≤", limit: 1.05, unit: "×", measured: faulty("one node dead", 1) },
  { goal: "one node slow, one at a time: p50 × all well", sign: "≤", limit: 1.05, unit: "×", measured: faulty("one node slow", 1) },
  { goal: "one node dead, 64 at once: rate of all well × this", sign: "≤", limit: 1.1, unit: "×", measured: faulty("one node dead", 64) },
  { goal: "one node slow, 64 at once: rate of all well × this", sign: "≤", limit: 1.1, unit: "×", measured: faulty("one node slow", 64) },
  { goal: "hand-over p50, worst of 2, 4 and 16 processes", sign: "≤", limit: 2_000, unit: "µs", measured: crowds("p50Us", [2, 4, 16]) },
  { goal: "hand-over p50, 64 processes", sign: "≤", limit: 2_000, unit: "µs", measured: crowds("p50Us", [64]) },
  {
    goal: "longest wait × fair share, worst of 2, 4 and 16 processes",
    sign: "≤",
    limit: 3,
    unit: "×",
    measured: crowds("fairShares", [2, 4, 16]),
  },
  {
    goal: "commands per hand-over and node, worst of 2, 4 and 16 processes",
    sign: "≤",
    limit: 3,
    unit: "",
    measured: crowds("commands", [2, 4, 16]),
  },
  { goal: "1 000 idle waiters, client and nodes together", sign: "≤", limit: 5, unit: "% of a core", measured: coresOfWaiters },
  {
    goal: "fenced PUT over 64 connections, rate × Express",
    sign: "≥",
    limit: 3,
    unit: "×",
    measured: ratio("puts/64", "perSecond", [GATEWAY, EXPRESS]),
  },
  {
    goal: "fenced PUT over 64 connections, rate × Fastify",
    sign: "≥",
    limit: 1.5,
    unit: "×",
    measured: ratio("puts/64", "perSecond", [GATEWAY, FASTIFY]),
  },
  {
    goal: "fenced PUT over one connection, rate × Express",
    sign: "≥",
    limit: 1,
    unit: "×",
    measured: ratio("puts/1", "perSecond", [GATEWAY, EXPRESS]),
    why: "its statement takes Postgres 130 µs of processor time, a hand-written upsert 72: 112 without any condition, for a wider row with four checks, and 18 for the fence",
  },
  {
    goal: "fenced PUT of one resource, rate × Express",
    sign: "≥",
    limit: 5,
    unit: "×",
    measured: ratio("hot-key", "perSecond", [GATEWAY, EXPRESS]),
  },
  {
    goal: "GET over 64 connections, rate × Express",
    sign: "≥",
    limit: 1.5,
    unit: "×",
    measured: ratio("gets/64", "perSecond", [GATEWAY, EXPRESS]),
  },
  {
    goal: "GET over one connection, rate × Express",
    sign: "≥",
    limit: 1,
    unit: "×",
    measured: ratio("gets/1", "perSecond", [GATEWAY, EXPRESS]),
  },
  {
    goal: "PUT of 0.1, 1, 10 and 100 kB, rate × Express, worst",
    ...{ sign: "≥", limit: 1, unit: "×" },
    measured: (results) =>
      worst(
        sizes.map((size) => ratioOf(results.get(`sizes/${size}`), "perSecond", [GATEWAY, EXPRESS])),
        "smallest",
      ),
  },
  {
    goal: "transactions of 100, rate × one hand-written fenced statement",
    ...{ sign: "≥", limit: 0.5, unit: "×" },
    measured: ratio("transactions", "perSecond", [GATEWAY, "node:http + pg, fenced unnest"]),
    why: "Postgres takes 1.5 ms of processor time where the hand-written statement takes 0.8: it looks at every row before it writes any (0.2) and writes wider rows; the gateway reads, checks and answers each operation",
  },
  {
    goal: "refused writes, rate × accepted ones",
    ...{ sign: "≥", limit: 1.2, unit: "×" },
    measured: ratio("refusals", "perSecond", [`${GATEWAY}, refused`, `${GATEWAY}, accepted`]),
    why: "the reason of a refusal is asked in a statement of its own, a tenth of the gateway's time, and its line in the log is another tenth",
  },
  { goal: "processor time of a PUT, largest table × 1 000 resources", sign: "≤", limit: 1.3, unit: "×", measured: costOfGrowth },
];

/** Nothing is called kept or missed after a run on a busy machine. */
export function goalRows({ results: list, machine }: Pick<Report, "results" | "machine">): readonly (readonly string[])[] {
  const results = new Map(list.map((result) => [result.id, result]));
  return goals.map(({ goal, sign, limit, unit, measured, why }) => {
    const value = measured(results);
    const digits = unit === "µs" ? 0 : limit % 1 !== 0 || unit === "×" ? 2 : 1;
    const of = unit === "" ? "" : ` ${unit}`;
    const isKept = value !== undefined && (sign === "≤" ? value <= limit : value >= limit);
    const verdict =
      value === undefined
        ? "not in this run"
        : isBusy(machine)
          ? "not judged, the machine was busy"
          : isKept
            ? "kept"
            : `**missed**${why === undefined ? "" : `: ${why}`}`;
    return [
      goal,
      `${sign} ${shown(limit, limit % 1 === 0 ? 0 : 2)}${of}`,
      value === undefined ? "–" : `${shown(value, digits)}${of}`,
      verdict,
    ];
  });
}
