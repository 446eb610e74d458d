// A run under faults as one picture: the verdict, the whole run with what was stored and refused
// over time and every fault below, close-ups of what was found, and the rest of it in words. Where
// nothing was found, a close-up of a refusal that saved an update.
import { isWrite } from "../checkers/stored-writes.js";
import type { Violation } from "../history/records.js";
import { type CloseUp, closeUp, faultRows } from "./close-up.js";
import { bar, LEFT, label, legend, MARGIN, short, svgDocument, type TimeScale, timeAxis, timeScale, WIDTH } from "./drawing.js";
import type { Outcome } from "./outcome.js";
import { figuresOf, savedUpdates, summary, verdict } from "./text.js";

const CHART = 120;
const BINS = 200;
const CLOSE_UPS = 8;
const LISTED = 8;
/** Shorter times without a stored write are not shown. */
const SILENCE_MS = 500;
const LINE_LENGTH = 190;
const LINE_HEIGHT = 16;

export function timeline(outcome: Outcome, { title, repeat }: { readonly title: string; readonly repeat: string }): string {
  const { violations } = outcome;
  const servers = outcome.servers.replaceAll(/ \([^)]*\)/g, "");
  const remarks = [verdict(outcome), ...summary(figuresOf(outcome)), servers, `To repeat: ${repeat}`];
  const parts = remarks.map((remark, i) => label(i === 0 && violations.length > 0 ? "remark bad" : "remark", MARGIN, 60 + i * 17)(remark));
  let y = 60 + remarks.length * 17 + 12;
  const whole = wholeRun(outcome, y);
  parts.push(...whole.parts);
  y += whole.height;
  const drawable = violations.filter((violation) => momentOf(violation) !== undefined).slice(0, CLOSE_UPS);
  const found = drawable.map(momentOf).filter((moment) => moment !== undefined);
  for (const moment of violations.length > 0 ? found : savedUpdate(outcome)) {
    const heading = paragraph("title", moment.title, y + 12);
    const drawn = closeUp(outcome, moment, y + 10 + heading.height);
    parts.push(...heading.parts, ...drawn.parts);
    y += 10 + heading.height + drawn.height;
  }
  for (const line of inWords(violations.filter((violation) => !drawable.includes(violation)))) {
    const drawn = paragraph("remark", line, y + 12);
    parts.push(...drawn.parts);
    y += drawn.height;
  }
  return svgDocument(y + MARGIN, title, parts);
}

/** The first in full: those that have no place in a picture, or found no room there. */
function inWords(violations: readonly Violation[]): string[] {
  const lines = violations.slice(0, LISTED).map(({ promise, what }) => `${promise}: ${what}`);
  return violations.length > LISTED ? [...lines, `and ${violations.length - LISTED} more`] : lines;
}

/** In as many lines as it needs. */
function paragraph(kind: string, text: string, top: number): Drawn {
  const lines = wrapped(text);
  return { height: lines.length * LINE_HEIGHT, parts: lines.map((line, i) => label(kind, MARGIN, top + i * LINE_HEIGHT)(line)) };
}

/** Broken between words; a word that is longer than a line is cut. */
function wrapped(text: string): string[] {
  return text.match(new RegExp(`\\S.{0,${LINE_LENGTH - 2}}(?=\\s|$)|\\S{${LINE_LENGTH}}`, "gs")) ?? [];
}

interface Drawn {
  readonly height: number;
  readonly parts: readonly string[];
}

function wholeRun({ history, span, injected }: Outcome, top: number): Drawn {
  const scale = timeScale(span, { x: LEFT, width: WIDTH - MARGIN - LEFT });
  const writes = history.operations.filter((operation) => operation.outcome === "done" && isWrite(operation));
  // A run of the lock alone stores nothing: it shows the leases.
  const done = writes.length > 0 ? writes.map(({ answeredAt }) => answeredAt) : history.leases.map(({ grantedAt }) => grantedAt);
  const stored = done.sort((a, b) => a - b);
  const refused = history.operations.filter(({ code }) => code === "fencing_token_stale").map(({ answeredAt }) => answeredAt);
  const what = writes.length > 0 ? "write stored" : "lease granted";
  const rows = faultRows(scale, injected, top + CHART + 16);
  const height = CHART + 16 + rows.height;
  return {
    height: height + 50,
    parts: [
      timeAxis(scale, { y: top, height, zeroAt: span.fromAt }),
      ...silences(scale, stored, top),
      ...chart(scale, { stored, refused }, top),
      ...rows.parts,
      legend(
        [
          ["good", what],
          ...(writes.length > 0 ? [["bad", "write refused as stale"] as const] : []),
          ["silence", `no ${what} for half a second or more`],
        ],
        LEFT,
        top + height + 36,
      ),
    ],
  };
}

/** Stored ones upwards, refused ones on top of them. */
function chart(scale: TimeScale, { stored, refused }: { stored: readonly number[]; refused: readonly number[] }, top: number): string[] {
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
  const bars = done.flatMap((count, i) => {
    const more = stale[i] ?? 0;
    const span = { fromAt: scale.fromAt + i * widthMs, untilAt: scale.fromAt + (i + 1) * widthMs };
    const title = `${count.toFixed(0)} done, ${more.toFixed(0)} refused as stale per second`;
    const base = top + CHART - heightOf(count);
    const upper = more > 0 ? [bar(scale, { ...span, y: base - heightOf(more), height: heightOf(more), kind: "bad", title })] : [];
    return [bar(scale, { ...span, y: base, height: heightOf(count), kind: "good", title }), ...upper];
  });
  return [label("end", LEFT - 10, top + 12)("per second"), label("end", LEFT - 10, top + 27)(`highest ${short(most)}`), ...bars];
}

function silences(scale: TimeScale, stored: readonly number[], top: number): string[] {
  const all = [scale.fromAt, ...stored.filter((at) => at > scale.fromAt && at < scale.untilAt), scale.untilAt];
  return all.flatMap((untilAt, i) => {
    const fromAt = all[i - 1] ?? untilAt;
    if (untilAt - fromAt < SILENCE_MS) return [];
    return [
      bar(scale, { fromAt, untilAt, y: top, height: CHART, kind: "silence", title: `nothing for ${(untilAt - fromAt).toFixed(0)} ms` }),
    ];
  });
}

/** Undefined if it has no moment or no resource: that cannot be drawn. */
function momentOf({ promise, what, at, resource }: Violation): CloseUp | undefined {
  if (at === undefined || resource === undefined || !Number.isFinite(at)) return undefined;
  return { title: `${promise}: ${what}`, resource, at, span: { fromAt: at - 300, untilAt: at + 300 } };
}

/** What would have been a lost update without the fence. */
function savedUpdate({ history }: Outcome): CloseUp[] {
  const refusals = savedUpdates(history);
  const refusal = refusals[Math.floor(refusals.length / 2)];
  if (refusal === undefined) return [];
  const { author, resource, sentAt: at, answeredAt, token, on } = refusal;
  const lease = history.leases.find((one) => one.resource === resource && one.token === token);
  const what = `${author} had read revision ${on?.rev} of ${resource} under token ${token}; when it wrote, at the dashed line, a newer token was there`;
  const span = { fromAt: Math.max(lease?.grantedAt ?? at, at - 1_500), untilAt: answeredAt };
  return [{ title: `One of ${refusals.length} refusals that saved an update: ${what}.`, resource, at, span }];
}
