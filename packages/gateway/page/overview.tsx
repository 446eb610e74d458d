// Everything at a glance: the verdict in one sentence, then nodes, writes, leases and refusals.
import { Fleet } from "./fleet.js";
import { useNow } from "./hooks.js";
import { Leases } from "./leases.js";
import { Refusals } from "./refusals.js";
import type { Known, Session } from "./session.js";
import { verdictOn } from "./verdict.js";
import { Writes } from "./writes.js";

export function Overview({ session, known }: { readonly session: Session; readonly known: Known }) {
  useNow(1_000);
  const { tone, headline, more } = verdictOn(known, Date.now());
  return (
    <div class="overview">
      <section class={`verdict ${tone}`} aria-label="Verdict">
        <div role="status">
          <h1>{headline}</h1>
        </div>
        <p>{more}</p>
      </section>
      <Fleet known={known} />
      <Writes writes={known.writes} />
      <Leases session={session} known={known} />
      <Refusals known={known} />
    </div>
  );
}
