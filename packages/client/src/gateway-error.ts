// A refusal, for calls that throw it.
import type { Refusal, RefusalCode } from "./results.js";

/** A refusal that was thrown. Of a write, `outcome` says whether it may be stored. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  /** The code of the refusal. */
  readonly code: RefusalCode;
  /** `unknown`: the document may or may not be stored. */
  readonly outcome: Refusal["outcome"];
  /** The whole answer. */
  readonly refusal: Refusal;
  constructor(message: string, refusal: Refusal) {
    super(`${message}: ${refusal.code}. ${refusal.detail}`);
    this.refusal = refusal;
    this.code = refusal.code;
    this.outcome = refusal.outcome;
  }
}
