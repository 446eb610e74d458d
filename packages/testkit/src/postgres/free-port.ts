// Finds a port on 127.0.0.1 that a server can be told to listen on, and find again after a restart. It cannot reserve it: whoever binds must be ready to
// hear that another process was faster, and ask again.
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

// Below the range from which Linux (32768…) and macOS (49152…) lend local ports to outgoing connections: while a crashed server is down, no client of
// anybody can be sitting on its port by accident.
const lowest = 15_000;
const highest = 32_000;
const attempts = 50;

async function canListen(port: number): Promise<boolean> {
  const probe = createServer();
  return await new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = randomInt(lowest, highest);
    if (await canListen(port)) return port;
  }
  throw new Error(`No free port on 127.0.0.1: ${attempts} tries between ${lowest} and ${highest} were all taken`);
}
