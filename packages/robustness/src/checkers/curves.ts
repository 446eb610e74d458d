// Every curve of the soak: what it shows, in which unit, and from when on its slope is a leak. A
// curve that may grow with the work done, because the work is kept, is measured per piece of that
// work. A panel is as bad as its worst curve.
import type { Point, Samples } from "../history/samples.js";
import { judge, judgedFromMs, type Rule, type RunSpan, type Verdict } from "./growth.js";

export interface Panel {
  readonly id: string;
  readonly group: "Client processes" | "Gateway" | "Redis nodes" | "Postgres" | "Service";
  readonly title: string;
  readonly unit: string;
  readonly rule: Rule;
  /** The panel that says the same exactly: where it has enough values, this one is only shown. */
  readonly exactly?: string;
}

const megabytes: Rule = { bad: "rising", fold: "median", percentPerHour: 6, perHour: 4, worthMentioning: 2 };
const heap: Rule = { bad: "rising", fold: "best", percentPerHour: 10, perHour: 2, worthMentioning: 1 };
/** Handles, connections, keys: one that is left behind in three parts of a run is seen. */
const count: Rule = { bad: "rising", fold: "median", percentPerHour: 3, perHour: 3, worthMentioning: 1.5 };
/** Follows what else the machine does. */
const pace: Rule = { bad: "rising", fold: "best", percentPerHour: 60, perHour: 5, worthMentioning: 2 };
const perPiece: Rule = { bad: "rising", fold: "median", percentPerHour: 20, perHour: 10, worthMentioning: 10 };

const ofProcess = (group: Panel["group"], prefix: string): readonly Panel[] => [
  { id: `${prefix}-rss`, group, title: "Resident memory", unit: "MB", rule: megabytes },
  // A saw: between two samples a busy process allots what a leak would in an hour, so the lowest
  // sample says when it was taken, not what is kept. The ground of the saw, read at each full
  // collection, is the next two curves.
  { id: `${prefix}-heap`, group, title: "JavaScript heap in use", unit: "MB", rule: heap, exactly: `${prefix}-kept` },
  { id: `${prefix}-kept`, group, title: "Objects after a full collection", unit: "MB", rule: { ...heap, fold: "median" } },
  { id: `${prefix}-code`, group, title: "Compiled code", unit: "MB", rule: megabytes },
  { id: `${prefix}-external`, group, title: "Memory outside the heap", unit: "MB", rule: { ...megabytes, perHour: 2, worthMentioning: 1 } },
  { id: `${prefix}-handles`, group, title: "Active handles and requests", unit: "", rule: count },
  { id: `${prefix}-timers`, group, title: "Active timers", unit: "", rule: count },
  { id: `${prefix}-fds`, group, title: "Open file descriptors", unit: "", rule: count },
  { id: `${prefix}-threads`, group, title: "Threads", unit: "", rule: count },
  { id: `${prefix}-lag`, group, title: "Event loop late by, p99", unit: "ms", rule: pace },
];

export const panels: readonly Panel[] = [
  { id: "operations", group: "Service", title: "Operations per second", unit: "/s", rule: { ...pace, bad: "falling", percentPerHour: 20 } },
  { id: "acquire-p99", group: "Service", title: "Taking a free lock, p99", unit: "ms", rule: pace },
  {
    id: "wait-p99",
    group: "Service",
    title: "Waiting for a hot lock, p99",
    unit: "ms",
    rule: { ...pace, perHour: 100, worthMentioning: 30 },
  },
  { id: "write-p99", group: "Service", title: "Write through the gateway, p99", unit: "ms", rule: pace },
  { id: "read-p99", group: "Service", title: "Read through the gateway, p99", unit: "ms", rule: pace },
  ...ofProcess("Client processes", "client"),
  { id: "client-waiting", group: "Client processes", title: "Waiting for a lock", unit: "", rule: count },
  ...ofProcess("Gateway", "gateway"),
  { id: "gateway-queue", group: "Gateway", title: "Requests and writes in flight", unit: "", rule: count },
  { id: "redis-memory", group: "Redis nodes", title: "used_memory", unit: "MB", rule: { ...megabytes, perHour: 1, worthMentioning: 0.3 } },
  { id: "redis-clients", group: "Redis nodes", title: "Connected clients", unit: "", rule: count },
  { id: "redis-channels", group: "Redis nodes", title: "Pub/sub channels and patterns", unit: "", rule: count },
  { id: "redis-blocked", group: "Redis nodes", title: "Blocked clients", unit: "", rule: count },
  { id: "redis-keys", group: "Redis nodes", title: "Keys", unit: "", rule: { ...count, percentPerHour: 10, worthMentioning: 50 } },
  { id: "redis-scripts", group: "Redis nodes", title: "Cached scripts", unit: "", rule: count },
  { id: "postgres-backends", group: "Postgres", title: "Connections", unit: "", rule: count },
  { id: "postgres-memory", group: "Postgres", title: "Private memory, all processes", unit: "MB", rule: megabytes },
  { id: "postgres-document", group: "Postgres", title: "Table and index per document", unit: "B", rule: perPiece },
  { id: "postgres-history", group: "Postgres", title: "History per accepted write", unit: "B", rule: perPiece },
  {
    id: "postgres-keys",
    group: "Postgres",
    title: "Used idempotency keys",
    unit: "MB",
    rule: { ...megabytes, perHour: 1, worthMentioning: 0.3 },
  },
  {
    id: "postgres-wal",
    group: "Postgres",
    title: "Write-ahead log on disk",
    unit: "MB",
    rule: { ...megabytes, perHour: 30, worthMentioning: 10 },
  },
  { id: "postgres-dead", group: "Postgres", title: "Dead rows", unit: "", rule: { ...count, percentPerHour: 50, worthMentioning: 200 } },
];

// Every curve of every panel judged; a panel is as bad as its worst curve. A curve with too few
// values is not flat. A curve that this machine cannot measure is no finding, nor is one that is
// only shown because another says the same exactly.
/** Parts of the judged span, in each of which there must be a new value. */
const PARTS_WITH_NEWS = 8;

export interface Curve {
  readonly name: string;
  readonly points: readonly Point[];
  readonly verdict: Verdict;
}

export interface Finding {
  readonly panel: Panel;
  readonly curves: readonly Curve[];
  /** The one with the steepest bad slope, those that are not flat before those that are. */
  readonly worst: Curve | undefined;
}

export function findAll(samples: Pick<Samples, "curvesOf" | "lastMs">): readonly Finding[] {
  const span = { fromMs: 0, untilMs: samples.lastMs };
  return panels.map((panel) => {
    const exact = panel.exactly === undefined ? undefined : samples.curvesOf(panel.exactly);
    const curves = [...samples.curvesOf(panel.id)].map(([name, points]) => {
      const verdict = judge(points, panel.rule, span);
      return { name, points, verdict: saysEnough(exact?.get(name), span) ? { ...verdict, kind: "not judged" as const } : verdict };
    });
    const [worst] = [...curves].sort((a, b) => badness(b, panel) - badness(a, panel));
    return { panel, curves, worst };
  });
}

export function isBad({ verdict }: Curve): boolean {
  return verdict.kind !== "flat" && verdict.kind !== "not judged";
}

/** Or not judged. */
export function isFlat({ curves }: Finding): boolean {
  return !curves.some(isBad);
}

export function isJudged({ curves }: Finding): boolean {
  return curves.some(({ verdict }) => verdict.kind !== "not judged");
}

/** Whether client 1 grows faster than its peers, which in a short run all still warm up. */
export function standsOut({ curves }: Finding): boolean {
  const leaking = curves.find(({ name }) => name === "client 1");
  if (leaking?.verdict.kind !== "rising") return false;
  return curves.every((curve) => curve === leaking || curve.verdict.mostPerHour < leaking.verdict.leastPerHour);
}

/** A value stands until there is a new one: new values are needed in every part of the run. */
function saysEnough(points: readonly Point[] | undefined, span: RunSpan): boolean {
  const fromMs = judgedFromMs(span);
  const widthMs = (span.untilMs - fromMs) / PARTS_WITH_NEWS;
  const withNews = new Set<number>();
  (points ?? []).forEach(({ atMs, value }, i, all) => {
    if (atMs >= fromMs && i > 0 && value !== all[i - 1]?.value)
      withNews.add(Math.min(PARTS_WITH_NEWS - 1, Math.floor((atMs - fromMs) / widthMs)));
  });
  return withNews.size === PARTS_WITH_NEWS;
}

function badness(curve: Curve, { rule }: Panel): number {
  const { verdict } = curve;
  const slope = Number.isNaN(verdict.perHour) ? 0 : verdict.perHour * (rule.bad === "rising" ? 1 : -1);
  return slope + (isBad(curve) ? 1e12 : 0);
}
