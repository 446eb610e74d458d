// Before the clock starts: fills what the gateway remembers of resources up to a bound, as it is full in one that has run for long. Its way up to that bound would last
// an hour at the pace of the soak and look like a leak of two megabytes; and nothing would show what becomes of a resource that is forgotten again.
import { createGatewayClient } from "@palisade/gateway/client";
import { createLocker } from "@palisade/lock";
import type { Stage } from "./stage.js";
import { MAX_TTL_MS } from "./tools-of-work.js";

/** As many as the gateway remembers at most (packages/gateway/src/guard/raise-check.ts). If it were more there, the soak would see it grow. */
const RESOURCES = 10_000;
/** One lease and one transaction for so many, the most that a lease may be of. */
const AT_ONCE = 128;
/** A machine that is busy with starting everything may answer late. */
const PATIENCE_MS = 5_000;

type FilledStage = Pick<Stage, "fleet" | "gatewayUrl">;

export interface FillHooks {
  readonly onFilled: (share: number) => void;
  readonly interrupted: AbortSignal;
}

/** Ends early, without an error, when it is interrupted. */
export async function fill(stage: FilledStage, namespace: string, { onFilled, interrupted }: FillHooks): Promise<void> {
  const { fleet, gatewayUrl } = stage;
  const gateway = createGatewayClient({ url: gatewayUrl, timeoutMs: PATIENCE_MS });
  // Forgotten by the nodes as soon as they may, so that the curves of their memory and keys begin where they stay.
  const patience = { nodeTimeoutMs: PATIENCE_MS / 5, waitMs: PATIENCE_MS };
  const limits = { ttlMs: MAX_TTL_MS, maxTtlMs: MAX_TTL_MS, retentionMs: MAX_TTL_MS };
  const locker = createLocker({ nodes: fleet.urls, namespace, label: "fill", ...limits, ...patience });
  try {
    for (let first = 1; first <= RESOURCES && !interrupted.aborted; first += AT_ONCE) {
      onFilled(first / RESOURCES);
      const resources = Array.from({ length: Math.min(AT_ONCE, RESOURCES - first + 1) }, (_, i) => `before/${first + i}`);
      await using lease = await locker.acquire(resources);
      const operations = resources.map((resource) => ({ op: "put" as const, resource, value: { text: "x".repeat(120) } }));
      const result = await gateway.transaction(operations, { lease });
      if (!result.ok) throw new Error(`the gateway could not be filled: ${result.code}`);
    }
  } finally {
    await locker.close();
  }
}
