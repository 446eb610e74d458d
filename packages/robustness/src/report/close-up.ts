// One moment of one resource: its leases, the calls and their answers, the pauses, the stored
// revisions, and the faults.
import { isWrite, storedWrites } from "../checkers/stored-writes.js";
import { AMBUSH_CLIENTS } from "../faults/ambush.js";
import type { InjectedFault, Place } from "../faults/fault-log.js";
import { groupedBy, type LeaseRecord, type Operation, type Span } from "../history/records.js";
import { bar, LEFT, label, legend, MARGIN, short, type TimeScale, timeAxis, timeScale, WIDTH } from "./drawing.js";
import type { Outcome } from "./outcome.js";

const ROW = 34;
const MARGIN_MS = 350;

export interface CloseUp {
  readonly title: string;
  readonly resource: string;
  readonly at: number;
  /** Shown with room on both sides. */
  readonly span: Span;
}

const colours = { done: "good", refused: "bad", unknown: "doubt" } as const;

export function closeUp(outcome: Outcome, { resource, at, span: shown }: CloseUp, top: number): { height: number; parts: string[] } {
  const { history, span, injected } = outcome;
  const wide = { fromAt: shown.fromAt - MARGIN_MS, untilAt: shown.untilAt + MARGIN_MS };
  const scale = timeScale(wide, { x: LEFT, width: WIDTH - MARGIN - LEFT });
  const own = <T extends { readonly resource: string }>(all: readonly T[]): T[] => all.filter((one) => one.resource === resource);
  const isInside = (fromAt: number, untilAt: number): boolean => fromAt < wide.untilAt && untilAt > wide.fromAt;
  const operations = own(history.operations).filter(({ sentAt, answeredAt }) => isInside(sentAt, answeredAt));
  const held = own([...history.leases, ...outcome.ambushed]).filter((lease) => isInside(lease.grantedAt, lease.validUntilAt));
  const calls = groupedBy(operations, ({ author }) => author);
  const leases = groupedBy(held, ({ client }) => nameOf(client));
  const paused = history.pauses.filter(({ fromAt, untilAt }) => isInside(fromAt, untilAt));
  const pauses = groupedBy(paused, ({ client }) => nameOf(client));
  const names = [...new Set([...leases.keys(), ...calls.keys()])].sort();
  const storedY = top + names.length * ROW;
  const faults = faultRows(scale, injected, storedY + 26);
  const height = storedY + 26 + faults.height - top;
  const parts = [
    timeAxis(scale, { y: top, height, zeroAt: span.fromAt }),
    `<path class="moment" d="M${short(scale(at))} ${top}v${height}"/>`,
    ...names.flatMap((name, i) => {
      const y = top + i * ROW;
      return [
        label("end", LEFT - 10, y + 18)(name),
        ...(leases.get(name) ?? []).map((lease) => leaseBar(scale, lease, y)),
        ...(pauses.get(name) ?? []).map((pause) =>
          bar(scale, {
            ...pause,
            y: y + 28,
            height: 3,
            kind: "pause",
            title: `did not run for ${(pause.untilAt - pause.fromAt).toFixed(0)} ms`,
          }),
        ),
        ...(calls.get(name) ?? []).map((operation) => callBar(scale, operation, y + 6)),
      ];
    }),
    label("end", LEFT - 10, storedY + 16)("stored revisions"),
    ...revisions(scale, { operations: own(history.operations), entries: own(history.entries) }, storedY),
    ...faults.parts,
    legend(kinds, LEFT, top + height + 34),
  ];
  return { height: height + 58, parts };
}

const kinds = [
  ["lease", "lease, with the last digits of its token"],
  ["look", "seal or read"],
  ["good", "write stored"],
  ["bad", "refused"],
  ["doubt", "unknown"],
  ["pause", "did not run"],
] as const;

function nameOf(client: number): string {
  return client > AMBUSH_CLIENTS ? `ambush ${client - AMBUSH_CLIENTS}` : `c${Math.floor(client / 1_000)}.${client % 1_000}`;
}

function leaseBar(scale: TimeScale, lease: LeaseRecord, y: number): string {
  const { token, grantedAt, validUntilAt, releasedAt = validUntilAt, toldAt = validUntilAt } = lease;
  const untilAt = Math.min(validUntilAt, releasedAt, toldAt);
  const title = `lease with token ${token}, ${(untilAt - grantedAt).toFixed(0)} ms`;
  const tag = label("", scale(grantedAt) + 3, y + 27)(`…${token % 10_000}`);
  return bar(scale, { fromAt: grantedAt, untilAt, y: y + 1, height: 27, kind: "lease", title }) + tag;
}

function callBar(scale: TimeScale, operation: Operation, y: number): string {
  const { id, kind, via, token, seq, sentAt, answeredAt, outcome, code, rev } = operation;
  const facts = [
    `${kind} ${id}${token === undefined ? "" : ` with token ${token}`}${seq === undefined ? "" : `;seq=${seq}`} (${via}): ${outcome}`,
    ...(code === undefined ? [] : [code]),
    ...(rev === undefined ? [] : [`revision ${rev}`]),
  ];
  const colour = !isWrite(operation) && outcome === "done" ? "look" : colours[outcome];
  return bar(scale, { fromAt: sentAt, untilAt: Math.min(answeredAt, scale.untilAt), y, height: 12, kind: colour, title: facts.join(", ") });
}

function revisions(scale: TimeScale, history: Parameters<typeof storedWrites>[0], y: number): string[] {
  return storedWrites(history).flatMap(({ kept }) =>
    kept.flatMap(({ entry, operation }) => {
      const at = Math.min(operation.answeredAt, scale.untilAt);
      if (at < scale.fromAt || operation.sentAt > scale.untilAt) return [];
      const x = scale(at);
      const title = `<title>revision ${entry.rev}: ${operation.id} with token ${entry.token}</title>`;
      return [
        `<circle class="revision" cx="${short(x)}" cy="${y + 12}" r="3.5">${title}</circle>`,
        label("middle", x, y + 25)(`${entry.rev}`),
      ];
    }),
  );
}

const order: readonly Place[] = [
  "nodes",
  "links to nodes",
  "gateways",
  "links to gateways",
  "store",
  "links to the store",
  "clients",
  "ambush",
];
const FAULT_ROW = 18;
const BAR = 11;

/** One row for each node and gateway, one for each other place. */
export function faultRows(scale: TimeScale, injected: readonly InjectedFault[], y: number): { height: number; parts: readonly string[] } {
  const seen = injected.filter(({ fromAt, untilAt }) => fromAt < scale.untilAt && untilAt > scale.fromAt);
  const rows = groupedBy(seen, ({ place, target }) => (place === "nodes" || place === "gateways" ? target : place));
  const rank = (name: string): number => order.indexOf(rows.get(name)?.[0]?.place ?? "ambush");
  const names = [...rows.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  const parts = names.flatMap((name, i) => {
    const top = y + i * FAULT_ROW;
    const bars = (rows.get(name) ?? []).map(({ fromAt, untilAt, kind, target, place }) => {
      const end = Number.isFinite(untilAt) ? untilAt : scale.untilAt;
      const title = `${kind}: ${target}, ${(end - fromAt).toFixed(0)} ms`;
      return bar(scale, { fromAt, untilAt: end, y: top + 3, height: BAR, kind: place.split(" ")[0] ?? "", title });
    });
    return [label("end", scale.x - 10, top + 12)(name), ...bars];
  });
  return { height: names.length * FAULT_ROW, parts };
}
