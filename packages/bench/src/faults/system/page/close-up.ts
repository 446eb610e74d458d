// One moment of one resource from near: who held a lease, who asked for what and was told what, who did not run, what became a revision, and which faults there were. Pure.
import type { Span } from "../../tenure.js";
import { isWrite, settled } from "../checkers/settled.js";
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

export function closeUp({ history, span, struck }: Outcome, { resource, at, span: shown }: Moment): string {
  const scale = scaleOf({ fromAt: shown.fromAt - MARGIN_MS, untilAt: shown.untilAt + MARGIN_MS });
  const inside = ({ fromAt, untilAt }: Span): boolean => fromAt < scale.untilAt && untilAt > scale.fromAt;
  const operations = history.operations.filter(
    (one) => one.resource === resource && inside({ fromAt: one.sentAt, untilAt: one.answeredAt }),
  );
  const tenures = history.tenures.filter(
    (one) => one.resource === resource && inside({ fromAt: one.grantedAt, untilAt: one.validUntilAt }),
  );
  const byAuthor = groupedBy(operations, ({ author }) => author);
  const holders = groupedBy(tenures, ({ client }) => `c${Math.floor(client / 1_000)}.${client % 1_000}`);
  const names = [...new Set([...holders.keys(), ...byAuthor.keys()])].sort();
  const shapes = names.flatMap((name, i) => {
    const y = TOP + i * ROW;
    const stalls = history.stalls.filter(
      (stall) => name === `c${Math.floor(stall.client / 1_000)}.${stall.client % 1_000}` && inside(stall),
    );
    return [
      label(name, y + 18),
      ...(holders.get(name) ?? []).map(({ token, grantedAt, validUntilAt, releasedAt = validUntilAt }) => {
        const untilAt = Math.min(validUntilAt, releasedAt);
        const title = `lease with token ${token}, ${(untilAt - grantedAt).toFixed(0)} ms`;
        return (
          bar(scale, { fromAt: grantedAt, untilAt, y: y + 1, height: 27, kind: "lease", title }) + tag(scale, grantedAt, y + 27, token)
        );
      }),
      ...stalls.map((stall) =>
        bar(scale, {
          ...stall,
          y: y + 28,
          height: 3,
          kind: "stall",
          title: `did not run for ${(stall.untilAt - stall.fromAt).toFixed(0)} ms`,
        }),
      ),
      ...(byAuthor.get(name) ?? []).map((operation) => call(scale, operation, y + 6)),
    ];
  });
  const storedY = TOP + names.length * ROW;
  const faults = faultRows(scale, struck, storedY + 26);
  const height = storedY + 26 + faults.height;
  const x = scale(at).toFixed(1);
  return picture(height + 24, `what happened to ${resource}`, [
    axis(scale, { y: TOP, height: height - TOP, zeroAt: span.fromAt }),
    `<line class="moment" x1="${x}" x2="${x}" y1="${TOP}" y2="${height}"/>`,
    ...shapes,
    label("stored revisions", storedY + 16),
    ...revisions(
      scale,
      {
        operations: history.operations.filter((one) => one.resource === resource),
        entries: history.entries.filter((one) => one.resource === resource),
      },
      storedY,
    ),
    ...faults.shapes,
  ]);
}

function call(scale: Scale, operation: Operation, y: number): string {
  const { id, kind, via, token, seq, sentAt, answeredAt, outcome, code, rev } = operation;
  const place = token === undefined ? "" : ` with token ${token}${seq === undefined ? "" : `;seq=${seq}`}`;
  const title = `${kind} ${id}${place} (${via}): ${outcome}${code === undefined ? "" : `, ${code}`}${rev === undefined ? "" : `, revision ${rev}`}`;
  const untilAt = Math.min(answeredAt, scale.untilAt);
  const isCall = isWrite(operation) ? outcome : `look ${outcome}`;
  return bar(scale, { fromAt: sentAt, untilAt, y, height: 12, kind: `call ${isCall}`, title });
}

function tag(scale: Scale, at: number, y: number, token: number): string {
  return `<text class="tag" x="${(scale(at) + 3).toFixed(1)}" y="${y}">…${escaped(String(token % 10_000))}</text>`;
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
