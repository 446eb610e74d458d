// Starts a fleet in containers and stays until it is killed. "stop": SIGTERM ends the fleet.
import { RedisFleet } from "@palisade/testkit";

const fleet = await RedisFleet.start({ nodes: 2, provider: "docker" });
await fleet.nodes[0]?.pause();
process.stdout.write("running\n");
if (process.argv[2] === "stop") {
  process.once("SIGTERM", async () => {
    await fleet.stop();
    process.exit(0);
  });
}
setInterval(() => {}, 60_000);
