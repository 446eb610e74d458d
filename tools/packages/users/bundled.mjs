// What a user bundles into one file: the lock and the client.
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";

const locker = createLocker({ nodes: (process.env.REDIS_URLS ?? "").split(",") });
const client = createGatewayClient({ url: "http://127.0.0.1:1", retry: { attempts: 1 } });
locker
  .using(`bundles/${process.pid}`, async (lease) => {
    const answer = await client.put("a", {}, { token: lease.token });
    if (answer.ok || answer.code !== "connection_failed") throw new Error(`it came to ${JSON.stringify(answer)}`);
    console.log(`bundled: a lease with token ${lease.token}`);
  })
  .finally(() => locker.close());
