// The whole run in one picture: how many writes were stored and how many refused as stale over time, when nothing was stored, and every fault below. Pure.
import { isWrite } from "../../../checkers/settled.js";
import type { Operation } from "../history.js";
import type { Outcome } from "../run.js";
import { faultRows } from "./fault-rows.js";
import { axis, bar, label, picture, type Scale, scaleOf } from "./markup.js";

const CHART = 120;
const TOP = 20;
const BINS = 200;
/** Shorter silences are nothing to look at. */
const SILENCE_MS = 500;

export function wholeRun({ history, span, struck }: Outcome): string {
  const scale = scaleOf(span);
  const stored = moments(history.operations.filter((one) => one.outcome === "done" && isWrite(one)));
  const refused = moments(history.operations.filter(({ code }) => code === "fencing_token_stale"));
  const rows = faultRows(scale, struck, TOP + CHART + 16);
  const height = TOP + CHART + 16 + rows.height;
  return picture(height + 24, "the whole run: stored and refused writes over time, and the faults", [
    axis(scale, { y: TOP, height: height - TOP, zeroAt: span.fromAt }),
    ...silences(scale, stored),
    ...bars(scale, stored, refused),
    label("stored per second", TOP + 14),
    label("refused as stale", TOP + 30),
    ...rows.shapes,
  ]);
}

function moments(operations: readonly Operation[]): number[] {
  return operations.map(({ answeredAt }) => answeredAt).sort((a, b) => a - b);
}

/** Stored ones upwards, refused ones on top of them. */
function bars(scale: Scale, stored: readonly number[], refused: readonly number[]): string[] {
  const widthMs = (scale.untilAt - scale.fromAt) / BINS;
  const perSecond = (all: readonly number[]): number[] => {
    const counts = new Array<number>(BINS).fill(0);
    for (const at of all) {
      const bin = Math.floor((at - scale.fromAt) / widthMs);
      if (bin >= 0 && bin < BINS) counts[bin] = (counts[bin] ?? 0) + 1_000 / widthMs;
    }
    return counts;
  };
  const [done, stale] = [perSecond(stored), perSecond(refused)];
  const most = Math.max(1, ...done.map((count, i) => count + (stale[i] ?? 0)));
  const heightOf = (count: number): number => (count / most) * CHART;
  const scaleLine = `<text class="tick" x="${scale(scale.fromAt) - 10}" y="${TOP + 52}" text-anchor="end">highest ${most.toFixed(0)}</text>`;
  return [
    scaleLine,
    ...done.flatMap((count, i) => {
      const more = stale[i] ?? 0;
      const span = { fromAt: scale.fromAt + i * widthMs, untilAt: scale.fromAt + (i + 1) * widthMs };
      const title = `${count.toFixed(0)} stored, ${more.toFixed(0)} refused as stale per second`;
      const base = TOP + CHART - heightOf(count);
      return [
        bar(scale, { ...span, y: base, height: heightOf(count), kind: "done", title }),
        ...(more > 0 ? [bar(scale, { ...span, y: base - heightOf(more), height: heightOf(more), kind: "refused", title })] : []),
      ];
    }),
  ];
}

function silences(scale: Scale, stored: readonly number[]): string[] {
  const all = [scale.fromAt, ...stored.filter((at) => at > scale.fromAt && at < scale.untilAt), scale.untilAt];
  return all.flatMap((untilAt, i) => {
    const fromAt = all[i - 1] ?? untilAt;
    if (untilAt - fromAt < SILENCE_MS) return [];
    const title = `nothing was stored for ${(untilAt - fromAt).toFixed(0)} ms`;
    return [bar(scale, { fromAt, untilAt, y: TOP, height: CHART, kind: "silence", title })];
  });
}
