// A holder as a process of its own, to be stopped by a signal: it takes a lease, says so, and
// writes when that is over, which it learns late if it was stopped meanwhile.
import { createGatewayClient } from "@palisade/client";
import { createLocker } from "@palisade/lock";

const { NODES = "", NAMESPACE = "", GATEWAY = "", KEY = "", RESOURCE = "" } = process.env;
const ttlMs = 1_000;
const locker = createLocker({
  nodes: NODES.split(","),
  namespace: NAMESPACE,
  label: "worker-7 (host b)",
  ttlMs,
  nodeTimeoutMs: 500,
  waitMs: 30_000,
});
const client = createGatewayClient({ url: GATEWAY, apiKey: KEY });
const lease = await locker.acquire(RESOURCE);
console.log(`holds ${lease.token}`);
const looking = setInterval(async () => {
  if (lease.held) return;
  clearInterval(looking);
  const answer = await client.put(RESOURCE, { by: "the paused one" }, { token: lease.token });
  console.log(answer.ok ? "stored" : answer.code);
  await locker.close();
}, 20);
