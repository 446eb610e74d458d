// `npm run dev`: the whole stack on servers of this machine, until Ctrl-C. Prints where everything
// is, a key, and three requests to try.
import { makeApiKey } from "@palisade/gateway";
import { createLocker } from "@palisade/lock";
import { startServers } from "./engine/environment.js";
import { startGateway } from "./engine/gateway-process.js";
import { paint } from "./output/text.js";
import { runProgram, untilAborted } from "./program.js";

const RESOURCE = "orders/42";

await runProgram(async (signal) => {
  const port = portFrom("PORT", 8080);
  const adminPort = portFrom("ADMIN_PORT", port === 0 ? 0 : 8081);
  await using servers = await startServers();
  const { key, sha256 } = makeApiKey();
  const apiKeys = JSON.stringify([{ id: "dev", sha256, scopes: ["read:", "write:", "seal:", "admin:"] }]);
  await using gateway = await startGateway({ ...servers, port, adminPort, apiKeys, timeouts: "usual" });
  const { older, newer } = await issueTwoTokens(servers.redisUrls);
  const url = `${gateway.url}/v1/resources/${RESOURCE}`;
  const put = (token: number, writtenBy: string): string =>
    `curl -i -X PUT ${url} -H 'Authorization: Bearer ${key}' -H 'Fencing-Token: ${token}' ` +
    `-H 'Content-Type: application/json' -d '${JSON.stringify({ writtenBy })}'`;
  console.log(`${servers.description.map((line) => paint.dim(line)).join("\n")}

gateway   ${paint.bold(gateway.url)}
probes    ${gateway.adminUrl}/ready   ${gateway.adminUrl}/metrics
API key   ${key}
postgres  ${servers.databaseUrl}
redis     ${servers.redisUrls.join(",")}

${paint.bold("Try")}  Two leases of ${RESOURCE} were issued just now, one after the other. \
The holder of the newer one writes; then the older one wakes up:

${put(newer, "the newer lease")}

${put(older, "the older lease")}

curl -i ${url} -H 'Authorization: Bearer ${key}'

${paint.dim("Ctrl-C stops everything and leaves nothing behind.")}`);
  await untilAborted(signal);
});

function portFrom(variable: string, fallback: number): number {
  const text = process.env[variable] || String(fallback);
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new Error(`${variable} is a port from 0 to 65535, not ${JSON.stringify(text)}.`);
}

/** Two leases, one after the other; both are over when this returns. */
async function issueTwoTokens(nodes: readonly string[]): Promise<{ readonly older: number; readonly newer: number }> {
  await using locker = createLocker({ nodes });
  await locker.ready();
  const take = async (): Promise<number> => {
    await using lease = await locker.acquire(RESOURCE);
    return lease.token;
  };
  return { older: await take(), newer: await take() };
}
