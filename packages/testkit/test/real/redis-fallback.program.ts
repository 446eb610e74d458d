// Asks for a fleet as a demo does, and prints what it got or why it got none.
import { RedisFleet } from "@palisade/testkit";

try {
  const fleet = await RedisFleet.start({ nodes: 2, ...(process.argv[2] === "any" ? { fallback: "wasm" } : {}) });
  console.log(fleet.description, await fleet.nodes[1]?.cli("PING"));
  await fleet.stop();
} catch (cause) {
  console.log((cause as Error).message);
  process.exitCode = 1;
}
