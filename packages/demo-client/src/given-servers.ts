// Whether servers that should run already are there and let us in, asked before anything is started. Decides only the sentence.
import { createGatewayClient } from "@palisade/gateway/client";
import { createLocker, type Locker } from "@palisade/lock";
import type { GatewayAddress } from "./stage.js";

export async function reachGateway({ url, apiKey }: GatewayAddress): Promise<void> {
  const answer = await createGatewayClient({ url, apiKey, timeoutMs: 5_000, retry: { attempts: 1 } }).get("demo");
  if (answer.ok || answer.code === "not_found") return;
  if (answer.code === "connection_failed" || answer.code === "timed_out") throw new Error(`No gateway answers at ${url}. ${answer.detail}`);
  if (answer.code === "unauthenticated") {
    throw new Error(
      apiKey === undefined
        ? `The gateway at ${url} wants to know who asks: give a key of it with --api-key.`
        : `The gateway at ${url} does not know the key that was given with --api-key.`,
    );
  }
  throw new Error(`The gateway at ${url} cannot be used: ${answer.code}. ${answer.detail}`);
}

export async function reachNodes(nodes: readonly string[], namespace = "palisade"): Promise<void> {
  let locker: Locker | undefined;
  try {
    locker = createLocker({ nodes, namespace, waitMs: 5_000 });
    await locker.ready();
  } catch (error) {
    throw new Error(`The given Redis nodes cannot be used. ${(error as Error).message}`, { cause: error });
  } finally {
    await locker?.close();
  }
}
