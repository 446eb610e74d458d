// A run under faults as people read it: in words and numbers for a terminal, and as one picture
// with the verdict, what was stored and refused over time, and every fault in a row of its node,
// gateway or place.
import { L1_TOLERANCE_MS } from "../checkers/leases.js";
import { isWrite } from "../checkers/writes.js";
import { type InjectedFault, places } from "../faults/schedule.js";
import { counted, groupedBy, type History, type Operation, type Span, type Violation } from "../history.js";
import { bar, label, MARGIN, type Plot, paragraph, svgDocument, timeAxis, WIDTH, whole, yOf } from "./svg.js";

/** What a run under faults leaves. */
export interface Outcome {
  readonly servers: string;
  /** The time in which there were faults. */
  readonly span: Span;
  readonly history: History;
  readonly violations: readonly Violation[];
  readonly injected: readonly InjectedFault[];
  readonly leftOut: Readonly<Record<string, number>>;
  /** How often clients stopped themselves. */
  readonly pauses: number;
}

const SHOWN = 12;

export function textReport(outcome: Outcome): string {
  const { violations, leftOut, servers, history, injected, pauses } = outcome;
  const { operations } = history;
  const stopped = Array.from({ length: pauses }, () => "client stopped itself");
  const refusals = operations.flatMap(({ outcome: how, code }) => (how === "refused" ? [code ?? "without a code"] : []));
  const found = violations.slice(0, SHOWN).map(({ promise, what }) => `  ${promise}: ${what}`);
  if (violations.length > SHOWN) found.push(`  and ${violations.length - SHOWN} more`);
  return [
    "",
    servers,
    ...summary(outcome),
    ...calls(operations),
    ...silences(outcome),
    list("faults", counted([...injected.map(({ kind }) => kind), ...stopped])),
    ...(operations.length === 0 ? [] : [list("refused with", counted(refusals))]),
    list("left out, because enough was broken", Object.entries(leftOut)),
    "",
    verdict(outcome),
    ...found,
  ].join("\n");
}

function summary({ history, span, injected, pauses }: Outcome): string[] {
  const { operations, leases, counters } = history;
  const seconds = (span.untilAt - span.fromAt) / 1_000;
  const held = new Set(leases.map(({ client, token }) => `${client} ${token}`)).size;
  const inAll = `${whole(held)} leases in ${seconds.toFixed(0)} s, with ${whole(injected.length + pauses)} faults.`;
  if (operations.length > 0) {
    const silence = `Longest time without a stored write: ${(longestSilenceMs(storedAt(history), span) / 1_000).toFixed(1)} s.`;
    const saved = `${whole(savedUpdates(history))} refusals saved an update that a late write would have destroyed.`;
    return [`${whole(operations.length)} operations under ${inAll}`, `${saved} ${silence}`];
  }
  const outlived = leases.filter(({ releasedAt = 0, validUntilAt }) => releasedAt > validUntilAt).length;
  const told = leases.filter(({ toldAt }) => toldAt !== undefined).length;
  // Where a node had counted something; the other samples cannot show a fall.
  const samples = counters.filter(({ floor, counter }) => floor > 0 && counter > 0).length;
  return [
    `${inAll} ${whole(held / seconds)} leases per second.`,
    `Ended before their release: ${whole(outlived)} leases; told by their signal: ${whole(told)}. L1 allows ${L1_TOLERANCE_MS} ms of running time.`,
    `Times a client did not run: ${whole(history.pauses.length)}. Samples of counters: ${whole(samples)}.`,
  ];
}

export function verdict({ violations, history }: Pick<Outcome, "violations" | "history">): string {
  const lost = violations.reduce((sum, { lostUpdates = 0 }) => sum + lostUpdates, 0);
  if (violations.length > 0)
    return `${violations.length} ${violations.length === 1 ? "violation" : "violations"}${lost > 0 ? `, ${whole(lost)} updates lost` : ""}`;
  if (history.operations.length === 0) return "No violation of T1, T2, L1, L2; counters only rose; no lock was left behind.";
  return `No violation of T1, T2, L1, L2, G1, G2, G3, G4: every answer can be believed, no update was lost, every resource is linearizable, and all recovered.`;
}

/** What came of each kind of call. */
function calls(operations: readonly Operation[]): string[] {
  const kinds = groupedBy(operations, ({ kind, via }) => (kind === "get" || kind === "seal" ? kind : `${kind} (${via})`));
  return [...kinds].map(([kind, all]) => list(kind, counted(all.map(({ outcome }) => outcome))));
}

/** For how long nothing was stored during faults of the store itself, each until the next. */
function silences({ history, injected, span }: Outcome): string[] {
  const ofStore = injected.filter(({ place }) => place === "store").sort((a, b) => a.fromAt - b.fromAt);
  const stored = storedAt(history);
  return ofStore.map(({ kind, target, fromAt }, i) => {
    const ms = longestSilenceMs(stored, { fromAt, untilAt: ofStore[i + 1]?.fromAt ?? span.untilAt });
    return `${kind} (${target}): ${(ms / 1_000).toFixed(1)} s without a stored write`;
  });
}

function list(title: string, counts: readonly (readonly [string, number])[]): string {
  return `${title}: ${counts.length === 0 ? "none" : counts.map(([name, count]) => `${name} ${whole(count)}`).join(", ")}`;
}

function storedAt({ operations }: History): number[] {
  const done = operations.filter((operation) => operation.outcome === "done" && isWrite(operation));
  return done.map(({ answeredAt }) => answeredAt).sort((a, b) => a - b);
}

function longestSilenceMs(stored: readonly number[], { fromAt, untilAt }: Span): number {
  const moments = [fromAt, ...stored.filter((at) => at > fromAt && at < untilAt), untilAt];
  return moments.reduce((longest, at, i) => Math.max(longest, at - (moments[i - 1] ?? at)), 0);
}

/** Refused as stale, of a document changed since the read: each would have lost an update. */
export function savedUpdates({ operations, entries }: Pick<History, "operations" | "entries">): number {
  const entryAt = new Map(entries.map((entry) => [`${entry.resource} ${entry.rev}`, entry]));
  return operations.filter(({ code, resource, on, token = 0 }) => {
    if (code !== "fencing_token_stale" || on === undefined) return false;
    return (entryAt.get(`${resource} ${on.rev + 1}`)?.token ?? 0) > token;
  }).length;
}

const LEFT = 178;
const CHART = 120;
const BINS = 200;
const ROW = 18;
/** Shorter times without a stored write are not shown. */
const SILENCE_MS = 500;

export function picture(outcome: Outcome, title: string, repeat: string): string {
  const { history, span, injected, violations } = outcome;
  const parts: string[] = [];
  let y = 60;
  const say = (kind: string, text: string): void => {
    const said = paragraph(kind, text, y);
    parts.push(...said.parts);
    y = said.y;
  };
  say(violations.length > 0 ? "bad" : "title", verdict(outcome));
  for (const text of [...summary(outcome), outcome.servers.replaceAll(/ \([^)]*\)/g, ""), `To repeat: ${repeat}`]) say("title", text);
  for (const { promise, what } of violations.slice(0, SHOWN)) say("bad", `${promise}: ${what}`);
  const writes = storedAt(history);
  // A run of the lock alone stores nothing: it shows the leases.
  const done = writes.length > 0 ? writes : history.leases.map(({ grantedAt }) => grantedAt).sort((a, b) => a - b);
  const refused = history.operations.filter(({ code }) => code === "fencing_token_stale").map(({ answeredAt }) => answeredAt);
  const what = writes.length > 0 ? "writes stored (green) and refused as stale (red)" : "leases granted";
  say("", `${what} per second; shaded where there was none for half a second; below, the faults`);
  const rows = groupedBy(injected, ({ place, target }) => (place === "nodes" || place === "gateways" ? target : place));
  const names = [...rows.keys()].sort((a, b) => rank(rows.get(a)) - rank(rows.get(b)) || a.localeCompare(b));
  const widthMs = (span.untilAt - span.fromAt) / BINS;
  const [stored, stale] = [done, refused].map((all) => perSecond(all, span, widthMs)) as [number[], number[]];
  const top = Math.max(1, ...stored.map((count, i) => count + (stale[i] ?? 0)));
  const chart: Plot = { ...span, x: LEFT, y, width: WIDTH - MARGIN - LEFT, height: CHART, top };
  parts.push(timeAxis({ ...chart, height: CHART + 16 + names.length * ROW }, span.fromAt), ...shadows(chart, done));
  parts.push(label("end", [LEFT - 10, y + 12], `highest ${whole(top)}`));
  stored.forEach((count, i) => {
    const bin = { fromAt: span.fromAt + i * widthMs, untilAt: span.fromAt + (i + 1) * widthMs };
    const more = stale[i] ?? 0;
    for (const [kind, from, height] of [["good", 0, count] as const, ["bad", count, more] as const]) {
      const upper = yOf(chart, from + height);
      if (height > 0) parts.push(bar({ ...chart, y: upper, height: yOf(chart, from) - upper }, bin, [kind, `${whole(height)} per second`]));
    }
  });
  y += CHART + 16;
  for (const name of names) {
    parts.push(label("end", [LEFT - 10, y + 12], name));
    for (const { kind, target, place, fromAt, untilAt } of rows.get(name) ?? []) {
      const whenOver = Math.min(untilAt, span.untilAt);
      const titled = `${kind}: ${target}, ${(whenOver - fromAt).toFixed(0)} ms`;
      parts.push(bar({ ...chart, y: y + 3, height: 11 }, { fromAt, untilAt: whenOver }, [`k${places.indexOf(place) % 6}`, titled]));
    }
    y += ROW;
  }
  return svgDocument(y + 40, title, parts);
}

function rank(faults: readonly InjectedFault[] | undefined): number {
  return places.indexOf(faults?.[0]?.place ?? "clients");
}

function perSecond(all: readonly number[], { fromAt }: Span, widthMs: number): number[] {
  const bins = groupedBy(all, (at) => Math.floor((at - fromAt) / widthMs));
  return Array.from({ length: BINS }, (_, bin) => ((bins.get(bin)?.length ?? 0) * 1_000) / widthMs);
}

function shadows(chart: Plot, done: readonly number[]): string[] {
  const all = [chart.fromAt, ...done.filter((at) => at > chart.fromAt && at < chart.untilAt), chart.untilAt];
  return all.flatMap((untilAt, i) => {
    const fromAt = all[i - 1] ?? untilAt;
    return untilAt - fromAt < SILENCE_MS ? [] : [bar(chart, { fromAt, untilAt }, ["shade", `nothing for ${whole(untilAt - fromAt)} ms`])];
  });
}
