// Why a command ends without an answer, with the exit code that says so.
import type { RefusalCode } from "@palisade/client";
import { LockError } from "@palisade/lock";

export class UsageError extends Error {
  override readonly name = "UsageError";
}

export class GatewayRefusal extends Error {
  override readonly name = "GatewayRefusal";
  constructor(
    message: string,
    readonly code: RefusalCode,
  ) {
    super(message);
  }
}

const NOT_REACHED: ReadonlySet<RefusalCode> = new Set(["connection_failed", "timed_out", "answer_not_understood", "unavailable"]);

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof TypeError || error instanceof RangeError) return 2;
  if (error instanceof LockError) return 3;
  if (error instanceof GatewayRefusal) return NOT_REACHED.has(error.code) ? 3 : error.code === "not_found" ? 1 : 4;
  return 3;
}
