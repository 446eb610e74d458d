// `npm run demo`: brings the real servers up, shows that they are there, and takes them down again. The stories themselves are not told here.
import pc from "picocolors";
import { runProgram } from "./program.js";
import { describeServers } from "./server-listing.js";
import { startServers } from "./servers.js";

await runProgram(async () => {
  await using servers = await startServers();
  console.log(describeServers(servers));
  const answers = await Promise.all(servers.redis.nodes.map((node) => node.cli("PING")));
  console.log(`${pc.green("✓")} asked all five nodes: ${answers.join(" ")}`);
});
