// The story of a resource's tokens: one line for each, the newest above, with what was accepted (a
// dot; from the first to the last a line, so that also those are seen that the table does not list),
// what was refused (a cross) and for how long the present lease still lasts (a bar). The same stands in
// the tables below it.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ResourceView } from "../src/messages.js";
import { Section } from "./elements.js";
import { duration, plural, unlessTrouble } from "./text.js";

const MAX_LINES = 8;
const [LINE, LEFT, RIGHT, TOP] = [26, 146, 20, 22];

interface Mark {
  readonly at: number;
  readonly isAccepted: boolean;
  readonly words: string;
}

export function Timeline({ view, passedMs }: { readonly view: ResourceView; readonly passedMs: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const lines = linesOf(view);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 600));
    if (box.current !== null) watch.observe(box.current);
    return () => watch.disconnect();
  }, [lines.length === 0]);
  if (lines.length === 0) return null;
  const now = view.at + passedMs;
  const known = unlessTrouble(view.lock);
  const lock = known?.state === "held" ? known : undefined;
  const end = lock === undefined ? now : view.at + (lock.endsInMs ?? 0);
  const marks = lines.flatMap(([, own]) => own);
  const spans = unlessTrouble(view.history)?.tokens ?? [];
  const accepted = unlessTrouble(view.fence)?.rev ?? 0;
  const refused = view.refusals.reduce((sum, { times }) => sum + times, 0);
  const own = lines.find(([token]) => token === lock?.token)?.[1] ?? [];
  const seenAt = Math.min(now, view.at - (lock?.seenForMs ?? 0), ...own.filter(({ isAccepted }) => isAccepted).map(({ at }) => at));
  const shown = spans.filter(({ token }) => lines.some(([line]) => line === token));
  const start = Math.min(now - 10_000, seenAt, ...marks.map(({ at }) => at), ...shown.map(({ firstAt }) => firstAt));
  const last = Math.max(now + (now - start) * 0.04, end);
  const x = (at: number): number => LEFT + ((at - start) / (last - start)) * (width - LEFT - RIGHT);
  const height = TOP + lines.length * LINE + 24;
  const writes = `${plural(accepted, "accepted write", "accepted writes")}, ${plural(refused, "refused write", "refused writes")}`;
  return (
    <Section class="timeline" title="Tokens">
      <div ref={box}>
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={`${plural(lines.length, "token", "tokens")} in ${duration(now - start)}; ${writes} in all`}
        >
          {lines.map(([token, marked], at) => (
            <g key={token} transform={`translate(0 ${TOP + at * LINE})`}>
              <line class="rule" x1={LEFT} x2={width - RIGHT} y1={LINE / 2} y2={LINE / 2} />
              <text class="token" x={LEFT - 12} y={LINE / 2 + 4} text-anchor="end">
                {token}
              </text>
              {lock?.token === token && (
                <rect class="good" x={x(seenAt)} y={LINE / 2 - 5} width={Math.max(2, x(end) - x(seenAt))} height={10} rx={5} />
              )}
              {shown
                .filter((span) => span.token === token)
                .map(({ writes: number, firstAt, lastAt }) => (
                  <line key="span" class="span" x1={x(firstAt)} x2={x(lastAt)} y1={LINE / 2} y2={LINE / 2}>
                    <title>{plural(number, "accepted write", "accepted writes")}</title>
                  </line>
                ))}
              {marked.map(({ at: when, isAccepted, words }, index) => (
                <path key={`${when}${index}`} class={isAccepted ? "good" : "worry"} d={isAccepted ? dot(x(when)) : cross(x(when))}>
                  <title>{words}</title>
                </path>
              ))}
            </g>
          ))}
          <line class="now" x1={x(now)} x2={x(now)} y1={TOP - 6} y2={height - 20} />
          <text class="scale" x={x(now)} y={12} text-anchor={x(now) > width - 60 ? "end" : "middle"}>
            now
          </text>
          <text class="scale" x={LEFT} y={height - 4}>
            {duration(now - start)} ago
          </text>
          {lock !== undefined && width > 500 && (
            <text class="scale" x={x(end)} y={height - 4} text-anchor="end">
              lease ends
            </text>
          )}
        </svg>
      </div>
      <p class="legend" aria-hidden="true">
        <span class="good">● accepted</span> <span class="worry">✕ refused</span>{" "}
        {lock !== undefined && <span class="good">▬ present lease</span>}
      </p>
    </Section>
  );
}

/** By token, the newest first. */
function linesOf({ lock, fence, history, refusals }: ResourceView): readonly (readonly [number, readonly Mark[]])[] {
  const lines = new Map<number, Mark[]>();
  const add = (token: number | null | undefined, ...marks: readonly Mark[]): void => {
    if (typeof token === "number") lines.set(token, [...(lines.get(token) ?? []), ...marks]);
  };
  const held = unlessTrouble(lock);
  if (held?.state === "held") add(held.token);
  const stored = unlessTrouble(fence);
  add(stored?.token);
  // Without a history the store tells the last write alone, and not if an operator moved the fence since.
  if (history === undefined && stored !== undefined && stored.rev > 0 && stored.moved?.token !== stored.token)
    add(stored.token, { at: stored.updatedAt, isAccepted: true, words: `the last write or seal; revision ${stored.rev}` });
  const { rows = [], tokens = [] } = unlessTrouble(history) ?? {};
  for (const { token, firstAt, lastAt, writes } of tokens)
    for (const at of new Set([firstAt, lastAt]))
      add(token, { at, isAccepted: true, words: plural(writes, "accepted write", "accepted writes") });
  for (const { token, at, rev, op } of rows) add(token, { at, isAccepted: true, words: `${op}, revision ${rev}` });
  for (const { presentedToken, at, firstAt, times, code } of refusals)
    for (const when of new Set([firstAt, at]))
      add(presentedToken, { at: when, isAccepted: false, words: `${code}, ${plural(times, "time", "times")}` });
  return [...lines].sort(([a], [b]) => b - a).slice(0, MAX_LINES);
}

const dot = (x: number): string => `M${x - 4.5},${LINE / 2} a4.5,4.5 0 1 0 9,0 a4.5,4.5 0 1 0 -9,0`;
const cross = (x: number): string => `M${x - 4},${LINE / 2 - 4} l8,8 m0,-8 l-8,8`;
