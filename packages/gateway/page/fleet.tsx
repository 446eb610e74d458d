// The nodes side by side: which are believed, which wait and for how long, which are silent.

import type { NodeNews } from "../src/page/messages.js";
import { useNow } from "./hooks.js";
import type { Known } from "./session.js";
import { printable, wholeDuration } from "./text.js";

const shapes = { votes: "M4 8.5 7 11.5 12.5 5", waits: "M8 4.5V8.5L10.5 10", silent: "M5 5 11 11M11 5 5 11" } as const;
const words = { votes: "votes", waits: "waits", silent: "silent" } as const;

export function Fleet({ known: { state, stateAt, hello } }: { readonly known: Known }) {
  const now = useNow(500);
  const fleet = state?.fleet;
  if (hello?.knowsLock === false) return null;
  return (
    <section class="fleet" aria-labelledby="fleet-title">
      <h2 id="fleet-title">Nodes</h2>
      <ul>
        {(fleet?.nodes ?? []).map((node) => (
          <Node key={node.node} node={node} passedMs={now - stateAt} />
        ))}
      </ul>
      {fleet?.trouble !== undefined && <p class="fault">{printable(fleet.trouble)}</p>}
    </section>
  );
}

function Node({ node, passedMs }: { readonly node: NodeNews; readonly passedMs: number }) {
  const { state, address, reason, readyInMs, latencyMs } = node;
  const since = state === "votes" ? "" : `for ${wholeDuration(Math.max(1_000, node.sinceMs + passedMs))}`;
  const wait = readyInMs === undefined ? "" : `may vote in ${wholeDuration(Math.max(0, readyInMs - passedMs))}`;
  const why = wait === "" ? printable(reason ?? "") : wait;
  return (
    <li class={state}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="7" />
        <path d={shapes[state]} />
      </svg>
      <span class="name">{node.node}</span>
      <span class="word">
        {words[state]} {since}
        {state === "votes" && latencyMs !== undefined && (
          <span class="latency"> in {latencyMs < 10 ? latencyMs.toFixed(1) : Math.round(latencyMs)} ms</span>
        )}
      </span>
      <span class="address">{printable(address)}</span>
      {why !== "" && <span class="why">{why}</span>}
    </li>
  );
}
