// Hands out TCP ports that no other process using this file will take, below the range from which
// the system gives ports to outgoing connections. One on which another program sits is passed over.
import { createServer, type Server } from "node:net";

const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;
const BLOCK_SIZE = 50;

// The first port of a block is held open as long as this process lives: that is the claim, and the
// kernel drops it when we die.
const claims: Server[] = [];
const free: number[] = [];
let claiming: Promise<void> | undefined;

/** A port on 127.0.0.1 that stays reserved for this process, also while nothing listens on it; or the one wanted. */
export async function takePort(wanted?: number): Promise<number> {
  if (wanted !== undefined) {
    if (await isFree(wanted)) return wanted;
    throw new Error(`port ${wanted} of 127.0.0.1 is taken by another program`);
  }
  for (;;) {
    const port = free.shift();
    if (port === undefined) {
      claiming ??= claimBlock().finally(() => {
        claiming = undefined;
      });
      await claiming;
      continue;
    }
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = await listenOn(port);
  if (probe !== undefined) await new Promise((resolve) => probe.close(resolve));
  return probe !== undefined;
}

/** Used again as late as possible: clients may still try to reach the port's former server. */
export function returnPort(port: number): void {
  free.push(port);
}

async function claimBlock(): Promise<void> {
  const blocks = Math.floor((LAST_PORT - FIRST_PORT) / BLOCK_SIZE);
  const start = Math.floor(Math.random() * blocks);
  for (let step = 0; step < blocks; step += 1) {
    const base = FIRST_PORT + ((start + step) % blocks) * BLOCK_SIZE;
    const claim = await listenOn(base);
    if (claim === undefined) continue;
    claims.push(claim.unref());
    for (let port = base + 1; port < base + BLOCK_SIZE; port += 1) free.push(port);
    return;
  }
  throw new Error(`no free block of ${BLOCK_SIZE} ports between ${FIRST_PORT} and ${LAST_PORT}: ${blocks} other processes hold them`);
}

/** Undefined where another process listens. */
function listenOn(port: number): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (cause: NodeJS.ErrnoException) =>
      cause.code === "EADDRINUSE" || cause.code === "EACCES" ? resolve(undefined) : reject(cause),
    );
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(server));
  });
}
