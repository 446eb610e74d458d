// Which refusals are worth another try, and when. What the gateway has decided is never retried: a
// stale token stays stale.
import { local, type Success } from "./answer.js";
import type { Refusal } from "./results.js";
import type { Call, Transport } from "./transport.js";

/** How often, how long and at which distance a call is repeated. Times are in milliseconds. */
export interface RetryPolicy {
  /** Tries in all; 1 is no retry. */
  readonly attempts: number;
  /**
   * No further try begins later than this after the first one. Longer than a restart of a gateway
   * takes.
   */
  readonly forMs: number;
  /** The longest pause after the first try; it doubles with each further one. */
  readonly firstPauseMs: number;
  /** Where it stops doubling, also if the gateway asks for a longer pause. */
  readonly longestPauseMs: number;
}

export interface Retried extends Call {
  /** Whether sending it twice does no more than sending it once. */
  readonly repeatable: "yes" | "no";
  /**
   * Aborts when the lease of the call ends: nothing more is sent then, but an answer under way is
   * waited for.
   */
  readonly leaseSignal?: AbortSignal | undefined;
}

const passing = new Set(["unavailable", "verification_unavailable", "contention", "rate_limited"]);
const undecided = new Set(["outcome_unknown", "connection_failed", "timed_out"]);
/**
 * What a load balancer answers while it has no gateway to pass a request to, or lost the one it
 * had.
 */
const betweenGateways = new Set([502, 503, 504]);

/**
 * A refusal is only as certain as the tries before it: if one of them may have been applied,
 * "stale" now says nothing about it, and the outcome of the call is unknown (G3).
 */
export async function sendWithRetry(transport: Transport, call: Retried, policy: RetryPolicy): Promise<Success | Refusal> {
  let outcome: Refusal["outcome"] = "not_applied";
  const startedAt = performance.now();
  for (let attempts = 1; ; attempts++) {
    if (signalsOf(call).some(({ aborted }) => aborted)) {
      return { ...local("lease_lost", "The lease is over, so nothing more was sent.", outcome), attempts: attempts - 1 };
    }
    const result = await transport(call);
    if (result.ok) return result;
    if (result.outcome === "unknown") outcome = "unknown";
    const waitMs = pauseMs(result, attempts, policy);
    const isOver = attempts >= policy.attempts || performance.now() - startedAt + waitMs > policy.forMs;
    if (isOver || !worthRetrying(result, call) || !(await pause(waitMs, call))) return { ...result, outcome, attempts };
  }
}

function signalsOf({ leaseSignal }: Retried): readonly AbortSignal[] {
  return leaseSignal === undefined ? [] : [leaseSignal];
}

function worthRetrying(refusal: Refusal, call: Retried): boolean {
  if (refusal.outcome === "not_applied") return passing.has(refusal.code) || refusal.code === "connection_failed";
  const isPassing = undecided.has(refusal.code) || (refusal.code === "answer_not_understood" && betweenGateways.has(refusal.status ?? 0));
  return isPassing && call.repeatable === "yes";
}

function pauseMs(refusal: Refusal, attempts: number, policy: RetryPolicy): number {
  const longest = Math.min(policy.longestPauseMs, policy.firstPauseMs * 2 ** (attempts - 1));
  // Jitter over the whole range, so that clients that failed together do not return together.
  const jittered = longest * (0.5 + Math.random() / 2);
  return refusal.retryAfterMs === undefined ? jittered : Math.min(refusal.retryAfterMs, policy.longestPauseMs) * (1 + Math.random() / 4);
}

/** False when the call or its lease was aborted during the pause. */
function pause(ms: number, call: Retried): Promise<boolean> {
  const signals = [...signalsOf(call), ...(call.signal === undefined ? [] : [call.signal])];
  return new Promise((resolve) => {
    const settle = (waited: boolean): void => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", onAbort);
      resolve(waited);
    };
    const onAbort = (): void => settle(false);
    const timer = setTimeout(() => settle(true), ms);
    for (const signal of signals) {
      if (signal.aborted) return settle(false);
      signal.addEventListener("abort", onAbort);
    }
  });
}

/**
 * A retry whose first try was stored after all: the gateway refuses its sequence number as already
 * used. Answers what is stored, for each operation, only if an earlier try may have been applied and
 * what is stored has exactly this number (the gateway compares numbers under equal tokens only). Any
 * other refusal stays what it is.
 */
export function seenBefore(answer: Success | Refusal, seqs: readonly (number | undefined)[]): readonly number[] | undefined {
  if (answer.ok || answer.code !== "sequence_out_of_order" || answer.outcome !== "unknown") return undefined;
  const seq = seqs[answer.operation ?? 0];
  if (seq === undefined || answer.currentSeq !== seq) return undefined;
  const rev = /^"(\d+)"$/.exec(answer.currentETag ?? "")?.[1];
  const revs = answer.currentRevs ?? (rev === undefined ? [] : [Number(rev)]);
  return revs.length === seqs.length ? revs : undefined;
}
