// A retry under the same sequence number whose first try was stored after all: the gateway refuses the second one because it knows the first.
import type { Refusal } from "./results.js";
import type { Success } from "./transport.js";

/**
 * Only if an earlier try may have been applied, and what is stored has exactly this number (the gateway compares numbers under equal tokens only): then it is the write
 * of that try. Anything else remains the refusal it is.
 */
export function seenBefore(answer: Success | Refusal, token: number, seq: number | undefined): Success | undefined {
  if (answer.ok || answer.code !== "sequence_out_of_order" || answer.outcome !== "unknown") return undefined;
  const rev = /^"(\d+)"$/.exec(answer.currentETag ?? "")?.[1];
  if (seq === undefined || answer.currentSeq !== seq || rev === undefined) return undefined;
  return { ok: true, status: answer.status ?? 0, text: "{}", rev: Number(rev), token, replayed: true };
}
