// `npm run dev`: the whole stack on servers of this machine, until Ctrl-C. Prints where everything is and a first thing to try. Tells no story.
import pc from "picocolors";
import { runProgram, wishToEnd } from "./program.js";
import { describeServers } from "./server-listing.js";
import { issueTwoTokens, startStack } from "./stack.js";

const resource = "hello";
const port = Number(process.env.PORT ?? 8080);
const adminPort = Number(process.env.ADMIN_PORT ?? (port === 0 ? 0 : 8081));

await runProgram(async (signal) => {
  await using stack = await startStack({ port, adminPort });
  const { older, newer } = await issueTwoTokens(stack.servers.redis.urls, resource);
  console.log(describeServers(stack.servers));
  console.log(`  ${pc.dim("gateway  ")}${stack.gateway.url}  ${pc.dim("open to everybody on this machine, and to nobody else")}`);
  console.log(`  ${pc.dim("probes   ")}${stack.gateway.adminUrl}/ready\n`);
  console.log(pc.bold("try: the holder of the newer lease writes, then the older one wakes up"));
  console.log(`  ${put(stack.gateway.url, newer, "newer")}`);
  console.log(`  ${put(stack.gateway.url, older, "older")}\n`);
  console.log(pc.dim("Ctrl-C stops everything and leaves nothing behind."));
  await wishToEnd(signal);
});

function put(url: string, token: number, writer: string): string {
  const headers = `-H 'Fencing-Token: ${token}' -H 'Content-Type: application/json'`;
  return `curl -i -X PUT ${url}/v1/resources/${resource} ${headers} -d '{"writer":"${writer}"}'`;
}
