// One moment of one resource from near: who held a lease, who asked for what and was told what, who did not run, what became a revision, and which faults there were. Pure.

import { isWrite, settled } from "../../../checkers/settled.js";
import { AMBUSHERS } from "../../../faults/ambush.js";
import type { Span, Tenure } from "../../../history/lease-record.js";
import { groupedBy, type Operation } from "../history.js";
import type { Outcome } from "../run.js";
import { faultRows } from "./fault-rows.js";
import { axis, bar, escaped, label, picture, type Scale, scaleOf } from "./markup.js";

const ROW = 34;
const TOP = 8;
const MARGIN_MS = 350;

export interface Moment {
  readonly resource: string;
  readonly at: number;
  /** Shown with room on both sides. */
  readonly span: Span;
}

export function closeUp(outcome: Outcome, { resource, at, span: shown }: Moment): string {
  const { history, span, struck } = outcome;
  const scale = scaleOf({ fromAt: shown.fromAt - MARGIN_MS, untilAt: shown.untilAt + MARGIN_MS });
  const own = <T extends { readonly resource: string }>(all: readonly T[]): T[] => all.filter((one) => one.resource === resource);
  const operations = own(history.operations).filter(({ sentAt, answeredAt }) => isInside(scale, sentAt, answeredAt));
  const tenures = own([...history.tenures, ...outcome.ambushed]).filter((one) => isInside(scale, one.grantedAt, one.validUntilAt));
  const calls = groupedBy(operations, ({ author }) => author);
  const leases = groupedBy(tenures, ({ client }) => nameOf(client));
  const stalls = groupedBy(
    history.stalls.filter(({ fromAt, untilAt }) => isInside(scale, fromAt, untilAt)),
    ({ client }) => nameOf(client),
  );
  const names = [...new Set([...leases.keys(), ...calls.keys()])].sort();
  const storedY = TOP + names.length * ROW;
  const faults = faultRows(scale, struck, storedY + 26);
  const height = storedY + 26 + faults.height;
  const x = scale(at).toFixed(1);
  return picture(height + 24, `what happened to ${resource}`, [
    axis(scale, { y: TOP, height: height - TOP, zeroAt: span.fromAt }),
    `<line class="moment" x1="${x}" x2="${x}" y1="${TOP}" y2="${height}"/>`,
    ...names.flatMap((name, i) => {
      const y = TOP + i * ROW;
      return [
        label(name, y + 18),
        ...(leases.get(name) ?? []).map((tenure) => lease(scale, tenure, y)),
        ...(stalls.get(name) ?? []).map((stall) => standstill(scale, stall, y)),
        ...(calls.get(name) ?? []).map((operation) => call(scale, operation, y + 6)),
      ];
    }),
    label("stored revisions", storedY + 16),
    ...revisions(scale, { operations: own(history.operations), entries: own(history.entries) }, storedY),
    ...faults.shapes,
  ]);
}

function isInside(scale: Scale, fromAt: number, untilAt: number): boolean {
  return fromAt < scale.untilAt && untilAt > scale.fromAt;
}

function nameOf(client: number): string {
  return client > AMBUSHERS ? `ambush ${client - AMBUSHERS}` : `c${Math.floor(client / 1_000)}.${client % 1_000}`;
}

function lease(
  scale: Scale,
  { token, grantedAt, validUntilAt, releasedAt = validUntilAt, toldAt = validUntilAt }: Tenure,
  y: number,
): string {
  const untilAt = Math.min(validUntilAt, releasedAt, toldAt);
  const title = `lease with token ${token}, ${(untilAt - grantedAt).toFixed(0)} ms`;
  return bar(scale, { fromAt: grantedAt, untilAt, y: y + 1, height: 27, kind: "lease", title }) + tag(scale(grantedAt), y + 27, token);
}

function standstill(scale: Scale, { fromAt, untilAt }: Span, y: number): string {
  return bar(scale, { fromAt, untilAt, y: y + 28, height: 3, kind: "stall", title: `did not run for ${(untilAt - fromAt).toFixed(0)} ms` });
}

function call(scale: Scale, operation: Operation, y: number): string {
  const { id, kind, via, token, seq, sentAt, answeredAt, outcome, code, rev } = operation;
  const place = token === undefined ? "" : ` with token ${token}${seq === undefined ? "" : `;seq=${seq}`}`;
  const title = `${kind} ${id}${place} (${via}): ${outcome}${code === undefined ? "" : `, ${code}`}${rev === undefined ? "" : `, revision ${rev}`}`;
  const untilAt = Math.min(answeredAt, scale.untilAt);
  const isCall = isWrite(operation) ? outcome : `look ${outcome}`;
  return bar(scale, { fromAt: sentAt, untilAt, y, height: 12, kind: `call ${isCall}`, title });
}

function tag(x: number, y: number, token: number): string {
  return `<text class="tag" x="${(x + 3).toFixed(1)}" y="${y}">…${escaped(String(token % 10_000))}</text>`;
}

function revisions(scale: Scale, history: Parameters<typeof settled>[0], y: number): string[] {
  return settled(history).flatMap(({ kept }) =>
    kept.flatMap(({ entry, operation }) => {
      const at = Math.min(operation.answeredAt, scale.untilAt);
      if (at < scale.fromAt || operation.sentAt > scale.untilAt) return [];
      const x = scale(at).toFixed(1);
      const title = `revision ${entry.rev}: ${operation.id} with token ${entry.token}`;
      return [
        `<circle class="revision" cx="${x}" cy="${y + 12}" r="3.5"><title>${escaped(title)}</title></circle><text class="tag" x="${x}" y="${y + 25}" text-anchor="middle">${entry.rev}</text>`,
      ];
    }),
  );
}
