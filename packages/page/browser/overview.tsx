// Everything at a glance: what an operator wants to know first, in one sentence, then the nodes, the
// writes of the last minutes, leases, and refused writes as they happen.
import type { Fault, LeasesNews, NodeNews, WriteCounts } from "../src/messages.js";
import { Section, useNow } from "./elements.js";
import { Leases } from "./leases.js";
import { RefusalTable } from "./refusals.js";
import type { Known } from "./session.js";
import { count, duration, plural, printable, timeOf } from "./text.js";

const REFUSALS_SHOWN = 100;

export function Overview({ known }: { readonly known: Known }) {
  const now = useNow(500);
  const [tone, headline, more] = verdictOn(known);
  const { hello, state, stateAt, writes, refusals } = known;
  return (
    <div class="overview">
      <section class={`verdict ${tone}`} aria-label="Verdict">
        <div role="status">
          <h1>{headline}</h1>
        </div>
        <p>{more}</p>
      </section>
      {hello?.knowsLock === true && (
        <Section class="fleet" title="Nodes">
          <ul>
            {state?.fleet?.nodes.map((node) => (
              <Node key={node.node} node={node} passedMs={now - stateAt} />
            ))}
          </ul>
          {state?.fleet?.trouble !== undefined && <p class="fault">{printable(state.fleet.trouble)}</p>}
        </Section>
      )}
      <Writes writes={writes} />
      {hello?.knowsLock === true && <Leases news={state?.leases} stateAt={stateAt} />}
      <Section class="refusals" title="Refused writes">
        <div class="scroller">
          <RefusalTable rows={refusals.slice(0, REFUSALS_SHOWN)} of="any" label="Refused writes" />
          {refusals.length === 0 && <p class="none">None.</p>}
        </div>
        {hello !== undefined && <p class="kept">By this gateway since {timeOf(hello.refusedSince)}; its log has all.</p>}
      </Section>
    </div>
  );
}

type Tone = "good" | "worry" | "bad";

/** A tone, a headline, and what more there is to say. */
function verdictOn({ state, hello, refusals, writes }: Known): readonly [Tone, string, string] {
  const recent = writes.slice(-RECENT_SECONDS);
  const late = recent.reduce((sum, { stale = 0 }) => sum + stale, 0);
  const held = heldWords(state?.leases);
  const refused = refusedWords(
    sumsOf(recent).reduce((sum, second) => sum + second.refused, 0),
    refusals.length === 0,
  );
  const { nodes = [], votes = 0, quorum = 0, trouble } = state?.fleet ?? {};
  if (trouble !== undefined) return ["bad", "The lock's nodes cannot be asked.", trouble];
  const waits = nodes.flatMap(({ readyInMs }) => readyInMs ?? []);
  const next = waits.length === 0 ? "" : `The next one votes in ${duration(Math.min(...waits))} at the earliest. `;
  if (votes < quorum && nodes.length > 0)
    return ["bad", `${votes} of ${nodes.length} nodes vote: no lease can be granted.`, `${quorum} are needed. ${next}${held} ${refused}`];
  const [fault] = state?.faults ?? [];
  const failed = sumsOf(writes.slice(-FAILED_SECONDS)).reduce((sum, second) => sum + second.failed, 0);
  const failures = failed === 0 ? "" : `${plural(failed, "write", "writes")} failed in the last ten seconds.`;
  if (fault !== undefined)
    return ["bad", faultWords(fault), `${sentence(printable(fault.detail))} ${remedies[fault.check] ?? ""} ${failures}`];
  if (failed > 0) return ["bad", failures, `They were not stored, or it is not known whether: the log says which. ${held}`];
  if (votes < nodes.length) {
    const left = `${votes === quorum ? "None more" : `${votes - quorum} more`} may fail.`;
    return ["worry", `${votes} of ${nodes.length} nodes vote. The lock works.`, `${left} ${next}${held} ${refused}`];
  }
  if (late > 0) {
    const headline = `${plural(late, "late write was", "late writes were")} refused in the last minute.`;
    return ["worry", headline, `A holder lost its lease without noticing it, and was stopped. ${held}`];
  }
  if (hello?.knowsLock === false) {
    const unknown = "It does not know the lock's nodes (PALISADE_REDIS_URLS), so nodes and leases are not shown.";
    return ["good", "The gateway is up.", `${refused} ${unknown}`];
  }
  if (nodes.length === 0) return ["good", "Asking the lock's nodes…", refused];
  return ["good", `All ${nodes.length} nodes vote. All is well.`, `${held} ${refused}`];
}

const FAILED_SECONDS = 10;
const RECENT_SECONDS = 60;

const faults: Readonly<Record<string, string>> = {
  database: "Postgres does not answer: nothing is stored",
  writable: "Postgres is read-only: nothing is stored",
  restore: "The database was restored: nothing is stored",
  durability: "Postgres cannot keep writes as durably as it should: they are refused",
  schema: "The schema of the database is not up to date",
};
const remedies: Readonly<Record<string, string>> = {
  database: "Look at Postgres, and at the way to it.",
  writable: "DATABASE_URL must lead to the primary.",
  restore: "Once it is the right one, run npx @palisade/gateway recover.",
  durability: "Connect the synchronous standby again.",
  schema: "Run npx @palisade/gateway migrate.",
};

function faultWords({ check, forMs }: Fault): string {
  return `${faults[check] ?? `The check ${check} of /ready fails`}, seen for ${duration(Math.max(1_000, forMs))}.`;
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function heldWords(leases: LeasesNews | undefined): string {
  if (leases?.held === undefined) return "";
  const isOld = leases.trouble !== undefined;
  if (leases.held === 0) return isOld ? "Nothing was held when last seen." : "Nothing is held.";
  if (isOld) return `${plural(leases.held, "lease was", "leases were")} held when last seen.`;
  const waits = leases.waiting === 0 ? "" : `, ${plural(leases.waiting, "waits", "wait")} for ${count(leases.contended)} of them`;
  return `${plural(leases.held, "lease is", "leases are")} held${waits}.`;
}

function refusedWords(recent: number, never: boolean): string {
  if (never) return "No write was refused since this gateway started.";
  if (recent === 0) return "No write was refused in the last minute.";
  return `${plural(recent, "write was", "writes were")} refused in the last minute.`;
}

const looks: Readonly<Record<NodeNews["state"], { readonly tone: Tone; readonly sign: string }>> = {
  votes: { tone: "good", sign: "M4 8.5 7 11.5 12.5 5" },
  waits: { tone: "worry", sign: "M8 4.5V8.5L10.5 10" },
  silent: { tone: "bad", sign: "M5 5 11 11M11 5 5 11" },
};

/** Whether it is believed; otherwise why not, and for how long still. */
function Node({ node, passedMs }: { readonly node: NodeNews; readonly passedMs: number }) {
  const { state, address, reason = "", readyInMs, latencyMs } = node;
  const { tone, sign } = looks[state];
  const why = readyInMs === undefined ? printable(reason) : `may vote in ${duration(Math.max(0, readyInMs - passedMs))}`;
  return (
    <li class={tone}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="7" />
        <path d={sign} />
      </svg>
      <span class="name">{node.node}</span>
      <span class="word">
        {state} {state === "votes" ? "" : `for ${node.isOlder ? "≥ " : ""}${duration(Math.max(1_000, node.sinceMs + passedMs))}`}
        {state === "votes" && latencyMs !== undefined && (
          <span class="latency"> in {latencyMs < 10 ? latencyMs.toFixed(1) : Math.round(latencyMs)} ms</span>
        )}
      </span>
      <span class="address">{printable(address)}</span>
      {why !== "" && <span class="why">{why}</span>}
    </li>
  );
}

const [WIDTH, HEIGHT] = [600, 96];
/** Shown at least, also right after a start. */
const LEAST_SECONDS = 60;
/** Neither stored nor refused by a rule: the caller does not know, or has to try again. */
const FAILED = /unavailable|outcome_unknown|contention/;
const outcomes = ["accepted", "refused", "failed"] as const;
const toneOf = { accepted: "good", refused: "worry", failed: "bad" } as const;

/** Of each second. */
function sumsOf(writes: readonly WriteCounts[]) {
  return writes.map((counts) => {
    const sums = { accepted: 0, refused: 0, failed: 0 };
    for (const [outcome, number] of Object.entries(counts))
      sums[outcome === "accepted" ? outcome : FAILED.test(outcome) ? "failed" : "refused"] += number;
    return sums;
  });
}

function Writes({ writes }: { readonly writes: readonly WriteCounts[] }) {
  const seconds = sumsOf(writes);
  const now = seconds.at(-1) ?? { accepted: 0, refused: 0, failed: 0 };
  // One area above the other: each has what stands below it as well.
  const heights = {
    accepted: seconds.map(({ accepted, refused, failed }) => accepted + refused + failed),
    refused: seconds.map(({ refused, failed }) => refused + failed),
    failed: seconds.map(({ failed }) => failed),
  };
  const most = Math.max(1, ...heights.accepted);
  const shown = Math.max(LEAST_SECONDS, seconds.length);
  const span = shown < 120 ? `${shown} s` : `${Math.round(shown / 60)} min`;
  const said = `Writes per second: ${outcomes.map((outcome) => `${now[outcome]} ${outcome}`).join(", ")}; at most ${most} in ${span}`;
  return (
    <Section class="writes" title="Writes per second">
      <dl>
        {outcomes.map((outcome) => (
          <div key={outcome} class={outcome !== "accepted" && now[outcome] > 0 ? toneOf[outcome] : ""}>
            <dt>{outcome}</dt>
            <dd>{count(now[outcome])}</dd>
          </div>
        ))}
      </dl>
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={said}>
        {outcomes.map((outcome) => (
          <path key={outcome} class={toneOf[outcome]} d={area(heights[outcome], most)} />
        ))}
      </svg>
      <p class="scale" aria-hidden="true">
        <span>{span} ago</span>
        <span>most: {count(most)}</span>
        <span>now</span>
      </p>
    </Section>
  );
}

/** Ends at the right, where now is. */
function area(values: readonly number[], most: number): string {
  if (!values.some((value) => value > 0)) return "";
  const step = WIDTH / (Math.max(LEAST_SECONDS, values.length) - 1);
  const start = WIDTH - (values.length - 1) * step;
  const points = values.map((value, at) => `${(start + at * step).toFixed(1)},${(HEIGHT - (value / most) * (HEIGHT - 4)).toFixed(1)}`);
  return `M${start.toFixed(1)},${HEIGHT} L${points.join(" ")} L${WIDTH},${HEIGHT}Z`;
}
