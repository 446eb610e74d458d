// Starts a fleet, prints where its processes and folders are, and stays until it is killed.
import { RedisFleet } from "@palisade/testkit";

const fleet = await RedisFleet.start({ nodes: 3, provider: "local" });
const folders = await Promise.all(fleet.nodes.map((node) => node.cli("CONFIG", "GET", "dir") as Promise<string[]>));
await fleet.nodes[0]?.pause();
process.stdout.write(`${JSON.stringify({ pids: fleet.nodes.map((node) => node.pid), folders: folders.map((reply) => reply[1]) })}\n`);
if (process.argv[2] === "stop") {
  process.once("SIGTERM", async () => {
    // Throws when the server has been taken away before its owner was done with it.
    await fleet.nodes[1]?.cli("PING");
    await fleet.stop();
    process.exit(0);
  });
}
setInterval(() => {}, 60_000);
