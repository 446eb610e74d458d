// The story of a resource's tokens: one line for each, the newest above, with what was accepted (a
// dot), what was refused (a cross) and for how long the present lease still lasts (a bar). The same
// stands in the tables below it.
import type { ResourceView } from "../src/page/messages.js";
import { useWidth } from "./hooks.js";
import { isTrouble, plural, wholeDuration } from "./text.js";

const MAX_LINES = 8;
const [LINE, LEFT, RIGHT, TOP] = [26, 146, 20, 22];

interface Mark {
  readonly at: number;
  readonly kind: "accepted" | "refused";
  readonly words: string;
}

export function Timeline({ view, passedMs }: { readonly view: ResourceView; readonly passedMs: number }) {
  const [box, width] = useWidth();
  const now = view.at + passedMs;
  const lines = linesOf(view);
  if (lines.length === 0) return null;
  const lock = view.lock !== undefined && !isTrouble(view.lock) && view.lock.state === "held" ? view.lock : undefined;
  const end = lock === undefined ? now : view.at + (lock.endsInMs ?? 0);
  const marks = lines.flatMap(([, own]) => own);
  const own = lines.find(([token]) => token === lock?.token)?.[1] ?? [];
  const seenAt = Math.min(now, view.at - (lock?.seenForMs ?? 0), ...own.filter(({ kind }) => kind === "accepted").map(({ at }) => at));
  const start = Math.min(now - 10_000, seenAt, ...marks.map(({ at }) => at));
  const last = Math.max(now + (now - start) * 0.04, end);
  const x = (at: number): number => LEFT + ((at - start) / (last - start)) * (width - LEFT - RIGHT);
  const height = TOP + lines.length * LINE + 24;
  const refused = marks.filter(({ kind }) => kind === "refused").length;
  const said = `${plural(lines.length, "token", "tokens")}, ${plural(marks.length - refused, "accepted write", "accepted writes")}, ${plural(refused, "refused write", "refused writes")} in ${wholeDuration(now - start)}`;
  return (
    <section class="timeline" aria-labelledby="timeline">
      <h2 id="timeline">Tokens</h2>
      <div ref={box}>
        <svg width={width} height={height} role="img" aria-label={said}>
          {lines.map(([token, marked], at) => (
            <g key={token} transform={`translate(0 ${TOP + at * LINE})`}>
              <line class="rule" x1={LEFT} x2={width - RIGHT} y1={LINE / 2} y2={LINE / 2} />
              <text class="token" x={LEFT - 12} y={LINE / 2 + 4} text-anchor="end">
                {token}
              </text>
              {lock?.token === token && (
                <rect class="lease" x={x(seenAt)} y={LINE / 2 - 5} width={Math.max(2, x(end) - x(seenAt))} height={10} rx={5} />
              )}
              {marked.map(({ at: when, kind, words }, index) => (
                <path key={`${kind}${when}${index}`} class={kind} d={kind === "accepted" ? dot(x(when)) : cross(x(when))}>
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
            {wholeDuration(now - start)} ago
          </text>
          {lock !== undefined && width > 500 && (
            <text class="scale" x={x(end)} y={height - 4} text-anchor="end">
              lease ends
            </text>
          )}
        </svg>
      </div>
      <p class="legend" aria-hidden="true">
        <span class="accepted">● accepted</span> <span class="refused">✕ refused</span>{" "}
        {lock !== undefined && <span class="lease">▬ present lease</span>}
      </p>
    </section>
  );
}

/** By token, the newest first. */
function linesOf({ lock, fence, history, refusals }: ResourceView): readonly (readonly [number, readonly Mark[]])[] {
  const lines = new Map<number, Mark[]>();
  const of = (token: number): Mark[] => {
    const own = lines.get(token) ?? [];
    lines.set(token, own);
    return own;
  };
  if (lock !== undefined && !isTrouble(lock) && lock.state === "held") of(lock.token);
  if (fence !== undefined && !isTrouble(fence)) of(fence.token);
  if (history !== undefined && !isTrouble(history))
    for (const { token, at, rev, op } of history) of(token).push({ at, kind: "accepted", words: `${op}, revision ${rev}` });
  for (const { presentedToken, at, code } of refusals)
    if (presentedToken !== null) of(presentedToken).push({ at, kind: "refused", words: code });
  return [...lines].sort(([a], [b]) => b - a).slice(0, MAX_LINES);
}

const dot = (x: number): string => `M${x - 4.5},${LINE / 2} a4.5,4.5 0 1 0 9,0 a4.5,4.5 0 1 0 -9,0`;
const cross = (x: number): string => `M${x - 4},${LINE / 2 - 4} l8,8 m0,-8 l-8,8`;
