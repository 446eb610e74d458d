// Writes per second for the last five minutes: accepted above the line, everything else in a colour
// of its own.
import type { WriteCounts } from "../src/page/messages.js";
import { count } from "./text.js";

/** Shown at least, also right after a start. */
const LEAST_SECONDS = 60;
const [WIDTH, HEIGHT] = [600, 96];

interface Sums {
  readonly accepted: number;
  readonly refused: number;
  readonly failed: number;
}

/** Neither stored nor refused by a rule: the caller does not know, or has to try again. */
const FAILED = /unavailable|outcome_unknown|contention/;

function sumsOf(counts: WriteCounts): Sums {
  const sums = { accepted: 0, refused: 0, failed: 0 };
  for (const [outcome, number] of Object.entries(counts))
    sums[outcome === "accepted" ? "accepted" : FAILED.test(outcome) ? "failed" : "refused"] += number;
  return sums;
}

export function Writes({ writes }: { readonly writes: readonly WriteCounts[] }) {
  const seconds = writes.map(sumsOf);
  const now = seconds.at(-1) ?? { accepted: 0, refused: 0, failed: 0 };
  const most = Math.max(1, ...seconds.map(({ accepted, refused, failed }) => accepted + refused + failed));
  const said = `Writes per second: ${now.accepted} accepted, ${now.refused} refused, ${now.failed} failed; at most ${most} in ${ago(seconds.length)}`;
  return (
    <section class="writes" aria-labelledby="writes-title">
      <h2 id="writes-title">Writes per second</h2>
      <dl>
        <div class="accepted">
          <dt>accepted</dt>
          <dd>{count(now.accepted)}</dd>
        </div>
        <div class={`refused ${now.refused > 0 ? "some" : ""}`}>
          <dt>refused</dt>
          <dd>{count(now.refused)}</dd>
        </div>
        <div class={`failed ${now.failed > 0 ? "some" : ""}`}>
          <dt>failed</dt>
          <dd>{count(now.failed)}</dd>
        </div>
      </dl>
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={said}>
        <path
          class="accepted"
          d={area(
            seconds.map(({ accepted, refused, failed }) => accepted + refused + failed),
            most,
          )}
        />
        <path
          class="refused"
          d={area(
            seconds.map(({ refused, failed }) => refused + failed),
            most,
          )}
        />
        <path
          class="failed"
          d={area(
            seconds.map(({ failed }) => failed),
            most,
          )}
        />
      </svg>
      <p class="scale" aria-hidden="true">
        <span>{ago(seconds.length)} ago</span>
        <span>most: {count(most)}</span>
        <span>now</span>
      </p>
    </section>
  );
}

function ago(seconds: number): string {
  const shown = Math.max(LEAST_SECONDS, seconds);
  return shown < 120 ? `${shown} s` : `${Math.round(shown / 60)} min`;
}

/** Ends at the right, where now is. */
function area(values: readonly number[], most: number): string {
  if (!values.some((value) => value > 0)) return "";
  const step = WIDTH / (Math.max(LEAST_SECONDS, values.length) - 1);
  const start = WIDTH - (values.length - 1) * step;
  const points = values.map((value, at) => `${(start + at * step).toFixed(1)},${(HEIGHT - (value / most) * (HEIGHT - 4)).toFixed(1)}`);
  return `M${start.toFixed(1)},${HEIGHT} L${points.join(" ")} L${WIDTH},${HEIGHT}Z`;
}
