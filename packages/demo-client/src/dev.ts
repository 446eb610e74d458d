// `npm run dev`: the whole stack on servers of this machine, until Ctrl-C. Prints where everything is, a key, and three lines to try. Tells no story.
import { makeApiKey } from "@palisade/gateway";
import { createLocker } from "@palisade/lock";

import { startGateway } from "./gateway-process.js";
import { paint } from "./paint.js";
import { runProgram, wishToEnd } from "./program.js";
import { startServers } from "./servers.js";

const resource = "orders/42";

await runProgram(async (signal) => {
  const port = portFrom("PORT", 8080);
  const adminPort = portFrom("ADMIN_PORT", port === 0 ? 0 : 8081);
  await using servers = await startServers();
  const { key, sha256 } = makeApiKey();
  const apiKeys = JSON.stringify([{ id: "dev", sha256, scopes: ["read:", "write:", "seal:", "admin:"] }]);
  await using gateway = await startGateway({ ...servers, port, adminPort, apiKeys, timeouts: "usual" });
  const { older, newer } = await issueTwoTokens(servers.redisUrls);
  console.log(servers.description.map((line) => paint.dim(line)).join("\n"));
  console.log(`
gateway   ${paint.bold(gateway.url)}
probes    ${gateway.adminUrl}/ready   ${gateway.adminUrl}/metrics
API key   ${key}
postgres  ${servers.databaseUrl}
redis     ${servers.redisUrls.join(",")}

${paint.bold("Try")}  Two leases of ${resource} were issued just now, one after the other. The holder of the newer one writes; then the older one wakes up:

${put({ url: gateway.url, key, token: newer, by: "the newer lease" })}

${put({ url: gateway.url, key, token: older, by: "the older lease" })}

curl -i ${gateway.url}/v1/resources/${resource} -H 'Authorization: Bearer ${key}'

${paint.dim("Ctrl-C stops everything and leaves nothing behind.")}`);
  await wishToEnd(signal);
});

function portFrom(variable: string, fallback: number): number {
  const text = process.env[variable] || String(fallback);
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new Error(`${variable} is a port from 0 to 65535, not ${JSON.stringify(text)}.`);
}

interface Put {
  readonly url: string;
  readonly key: string;
  readonly token: number;
  readonly by: string;
}

function put({ url, key, token, by }: Put): string {
  const headers = [`Authorization: Bearer ${key}`, `Fencing-Token: ${token}`, "Content-Type: application/json"].map(
    (header) => `-H '${header}'`,
  );
  return `curl -i -X PUT ${url}/v1/resources/${resource} ${headers.join(" ")} -d '{"writtenBy":"${by}"}'`;
}

/** Two leases, one after the other; both are over when this returns. */
async function issueTwoTokens(nodes: readonly string[]): Promise<{ readonly older: number; readonly newer: number }> {
  const locker = createLocker({ nodes });
  try {
    await locker.ready();
    const take = async (): Promise<number> => {
      await using lease = await locker.acquire(resource);
      return lease.token;
    };
    return { older: await take(), newer: await take() };
  } finally {
    await locker.close();
  }
}
