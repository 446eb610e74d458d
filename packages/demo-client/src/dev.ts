// `npm run dev`: the stack on servers of this machine, until Ctrl-C. Prints where everything is and a first thing to try. Shows no story.
import pc from "picocolors";
import { runProgram, wishToEnd } from "./program.js";
import { describeServers } from "./server-listing.js";
import { startServers } from "./servers.js";

await runProgram(async (signal) => {
  await using servers = await startServers();
  const { hostname, port } = new URL(servers.redis.urls[0] ?? "");
  console.log(describeServers(servers));
  console.log(`${pc.bold("try")}  printf 'PING\\r\\nQUIT\\r\\n' | curl -s telnet://${hostname}:${port}`);
  console.log(pc.dim("Ctrl-C stops everything and leaves nothing behind."));
  await wishToEnd(signal);
});
