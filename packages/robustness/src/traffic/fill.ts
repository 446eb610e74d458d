// Before a soak begins: fills the gateway's memory of resources to its bound, as in a gateway that
// has run for long. At the pace of the soak that would take an hour and look like a leak of two
// megabytes, and no resource would be forgotten again during the soak: what that leaves behind
// would not be seen.
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";
import { loadTimes } from "./load-tools.js";

/**
 * As many as the gateway remembers at most (packages/gateway/src/guard/raise-check.ts). With a
 * higher bound there, the soak would see it grow.
 */
const RESOURCES = 10_000;
/** Under one lease and in one transaction: the most that a lease may cover. */
const AT_ONCE = 128;
/** While everything starts, answers may be late. */
const TIMEOUT_MS = 5_000;

export interface Filled {
  readonly redisUrls: readonly string[];
  readonly gatewayUrl: string;
  readonly namespace: string;
}

interface FillHooks {
  readonly onFilled: (share: number) => void;
  readonly interrupted: AbortSignal;
}

/** Ends early, without an error, when it is interrupted. */
export async function fill({ redisUrls, gatewayUrl, namespace }: Filled, { onFilled, interrupted }: FillHooks): Promise<void> {
  const gateway = createGatewayClient({ url: gatewayUrl, timeoutMs: TIMEOUT_MS, retry: { attempts: 5 } });
  // The nodes forget these resources early, so that the curves of their memory and keys begin at
  // the level where they stay.
  const timeouts = { nodeTimeoutMs: TIMEOUT_MS / 5, waitMs: TIMEOUT_MS };
  const { maxTtlMs } = loadTimes;
  const limits = { ttlMs: maxTtlMs, maxTtlMs, retentionMs: maxTtlMs };
  const locker = createLocker({ nodes: redisUrls, namespace, label: "fill", ...limits, ...timeouts });
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
