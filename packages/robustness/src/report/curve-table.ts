// A soak in words: a line while it runs, a table at the end.
import { type Finding, isBad, isFlat, isJudged } from "../checkers/curves.js";
import { counted } from "../history/records.js";
import type { Samples, Soaked } from "../history/samples.js";
import { table, whole } from "./table.js";

const HOUR_MS = 3_600_000;

/** 0.034 → "0.03", 123.4 → "123", 12345 → "12 345". */
export function figure(value: number): string {
  if (Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const decimals = Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  const text = size >= 100 ? whole(size) : size.toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text.replace(/^0\.0+$/, "0");
}

/** With its sign. */
export function slopeOf(finding: Finding): string {
  const perHour = finding.worst?.verdict.perHour ?? Number.NaN;
  if (Number.isNaN(perHour)) return "–";
  return `${perHour > 0 ? "+" : ""}${figure(perHour)}${finding.panel.unit === "" ? "" : ` ${finding.panel.unit}`}/h`;
}

interface SoakProgress {
  readonly elapsedMs: number;
  readonly minutes: number;
  readonly samples: Samples;
  readonly operations: number;
}

export function soakProgress({ elapsedMs, minutes, samples, operations }: SoakProgress): string {
  const row = samples.rows.at(-1)?.values ?? {};
  const highest = (panel: string): string => {
    const values = Object.entries(row).flatMap(([key, value]) => (key.startsWith(`${panel}/`) ? [value] : []));
    return values.length === 0 ? "–" : figure(Math.max(...values));
  };
  return [
    `${(elapsedMs / 60_000).toFixed(1)} of ${minutes} min`,
    `${whole(operations)} operations`,
    `${samples.disturbances.length} disturbances`,
    `clients ${highest("client-rss")} MB, ${highest("client-fds")} fds`,
    `gateway ${highest("gateway-rss")} MB, ${highest("gateway-fds")} fds`,
    `redis ${highest("redis-memory")} MB, ${highest("redis-keys")} keys`,
    `postgres ${highest("postgres-memory")} MB, ${highest("postgres-backends")} connections`,
  ].join(" · ");
}

export function curveTable({ samples, servers, operations, failures, ending }: Soaked, findings: readonly Finding[]): string {
  const judgedMs = (samples.lastMs * 2) / 3;
  const rows = findings.map((finding) => [
    finding.panel.group,
    finding.panel.title,
    String(finding.curves.length),
    finding.worst === undefined ? "–" : `${figure(finding.worst.verdict.level)} ${finding.panel.unit}`.trimEnd(),
    slopeOf(finding),
    interval(finding),
    verdictOf(finding),
  ]);
  const columns = [
    { title: "of", align: "left" as const },
    { title: "curve", align: "left" as const },
    { title: "curves" },
    { title: "level" },
    { title: "steepest" },
    { title: "between" },
    { title: "verdict", align: "left" as const },
  ];
  return [
    "",
    ...servers,
    `${whole(sum(operations))} operations in ${(samples.lastMs / 60_000).toFixed(1)} min (${ending}): ${listed(operations)}`,
    `refused or failed: ${listed(failures)}`,
    `disturbances: ${listed(Object.fromEntries(counted(samples.disturbances.map(({ what }) => what))))}`,
    "",
    table(columns, rows),
    "",
    `judged: the last ${(judgedMs / 60_000).toFixed(1)} min; slopes with the limits between which each is, at 98 %, extrapolated by ${figure(HOUR_MS / judgedMs)} to an hour`,
  ].join("\n");
}

export function verdictOf(finding: Finding): string {
  if (finding.curves.length === 0) return "not measured";
  if (!isJudged(finding)) return "not judged, only shown";
  if (isFlat(finding)) return "flat";
  return finding.curves
    .filter(isBad)
    .map(({ name, verdict }) => `${verdict.kind.toUpperCase()} (${name})`)
    .join(", ");
}

function interval({ worst }: Finding): string {
  if (worst === undefined || Number.isNaN(worst.verdict.perHour)) return "–";
  return `${figure(worst.verdict.leastPerHour)} … ${figure(worst.verdict.mostPerHour)}`;
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function listed(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${whole(count)}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}
