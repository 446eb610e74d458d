// Every curve of the soak: what it shows, in which unit, and from when on its slope is a leak. A
// curve that may grow with the work done, because the work is kept, is measured per piece of that
// work. A panel is as bad as its worst curve. A curve with too few values is not flat. A curve that
// this machine cannot measure is no finding.
import { judge, type Point, type Rule, type Verdict } from "./growth.js";

/** Every curve's value at one moment, by "panel/series". */
export interface Row {
  readonly atMs: number;
  readonly values: Readonly<Record<string, number>>;
}

export interface Panel {
  readonly id: string;
  readonly group: string;
  readonly title: string;
  readonly unit: string;
  readonly rule: Rule;
}

const megabytes: Rule = { bad: "rising", fold: "median", percentPerHour: 6, perHour: 4, worthMentioning: 2 };
/** Handles, connections, keys: one that is left behind in three parts of a run is seen. */
const count: Rule = { bad: "rising", fold: "median", percentPerHour: 3, perHour: 3, worthMentioning: 1.5 };
/** Follows what else the machine does. */
const pace: Rule = { bad: "rising", fold: "best", percentPerHour: 60, perHour: 5, worthMentioning: 2 };
const perPiece: Rule = { bad: "rising", fold: "median", percentPerHour: 20, perHour: 10, worthMentioning: 10 };

type Described = readonly [id: string, title: string, unit: string, rule: Rule];

const ofProcess: readonly Described[] = [
  ["rss", "Resident memory", "MB", megabytes],
  // Of the heap in use only the ground of its saw says what is kept, read at each full collection.
  ["kept", "Objects after a full collection", "MB", { ...megabytes, percentPerHour: 10, perHour: 2, worthMentioning: 1 }],
  ["code", "Compiled code", "MB", megabytes],
  ["external", "Memory outside the heap", "MB", { ...megabytes, perHour: 2, worthMentioning: 1 }],
  ["handles", "Active handles and requests", "", count],
  ["timers", "Active timers", "", count],
  ["fds", "Open file descriptors", "", count],
  ["threads", "Threads", "", count],
  ["lag", "Event loop late by, p99", "ms", pace],
];

const groups: Readonly<Record<string, readonly [name: string, curves: readonly Described[]]>> = {
  service: [
    "Service",
    [
      ["rate", "Operations per second", "/s", { ...pace, bad: "falling", percentPerHour: 20 }],
      ["acquire", "Taking a free lock, p50", "ms", pace],
      ["wait", "Waiting for a hot lock, p50", "ms", { ...pace, perHour: 100, worthMentioning: 30 }],
      ["write", "Write through the gateway, p50", "ms", pace],
      ["read", "Read through the gateway, p50", "ms", pace],
    ],
  ],
  client: ["Client", [...ofProcess, ["waiting", "Waiting for a lock", "", count]]],
  gateway: ["Gateway", [...ofProcess, ["queue", "Requests and writes in flight", "", count]]],
  redis: [
    "Redis",
    [
      ["memory", "used_memory", "MB", { ...megabytes, perHour: 1, worthMentioning: 0.3 }],
      ["clients", "Connected clients", "", count],
      ["channels", "Pub/sub channels and patterns", "", count],
      ["blocked", "Blocked clients", "", count],
      ["keys", "Keys", "", { ...count, percentPerHour: 10, worthMentioning: 50 }],
      ["scripts", "Cached scripts", "", count],
    ],
  ],
  postgres: [
    "Postgres",
    [
      ["backends", "Connections", "", count],
      ["memory", "Private memory, all processes", "MB", megabytes],
      ["document", "Table and index per document", "B", perPiece],
      ["history", "History per accepted write", "B", perPiece],
      ["wal", "Write-ahead log on disk", "MB", { ...megabytes, perHour: 30, worthMentioning: 10 }],
      ["dead", "Dead rows", "", { ...count, percentPerHour: 50, worthMentioning: 200 }],
    ],
  ],
};

const panels: readonly Panel[] = Object.entries(groups).flatMap(([prefix, [group, curves]]) =>
  curves.map(([id, title, unit, rule]) => ({ id: `${prefix}-${id}`, group, title, unit, rule })),
);

export interface Curve {
  readonly name: string;
  readonly points: readonly Point[];
  readonly verdict: Verdict;
}

export interface Finding {
  readonly panel: Panel;
  readonly curves: readonly Curve[];
  /** The one with the steepest bad slope, those that are not flat before those that are. */
  readonly worst: Curve;
}

/** Of each panel that was measured. */
export function findAll(rows: readonly Row[]): readonly Finding[] {
  const span = { fromMs: 0, untilMs: rows.at(-1)?.atMs ?? 0 };
  const points = new Map<string, Point[]>();
  for (const { atMs, values } of rows)
    for (const [key, value] of Object.entries(values)) points.get(key)?.push({ atMs, value }) ?? points.set(key, [{ atMs, value }]);
  return panels.flatMap((panel) => {
    const own = [...points].filter(([key]) => key.startsWith(`${panel.id}/`)).sort(([a], [b]) => (a < b ? -1 : 1));
    const curves = own.map(([key, values]): Curve => {
      return { name: key.slice(panel.id.length + 1), points: values, verdict: judge(values, panel.rule, span) };
    });
    const [worst] = [...curves].sort((a, b) => badness(b, panel) - badness(a, panel));
    return worst === undefined ? [] : [{ panel, curves, worst }];
  });
}

export function isBad({ verdict }: Curve): boolean {
  return verdict.kind !== "flat";
}

/** Whether client 1 grows faster than its peers, which in a short run all still warm up. */
export function standsOut({ curves }: Finding): boolean {
  const leaking = curves.find(({ name }) => name === "client 1");
  if (leaking?.verdict.kind !== "rising") return false;
  return curves.every((curve) => curve === leaking || curve.verdict.mostPerHour < leaking.verdict.leastPerHour);
}

function badness(curve: Curve, { rule }: Panel): number {
  const { perHour } = curve.verdict;
  const slope = Number.isNaN(perHour) ? 0 : perHour * (rule.bad === "rising" ? 1 : -1);
  return slope + (isBad(curve) ? 1e12 : 0);
}
