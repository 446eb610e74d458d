// The control of the soak: a client that does one thing wrong with every operation, as real clients do. What the judge does not find here, it would not find
// anywhere.
import { connect, type Socket } from "node:net";
import type { Leak } from "./client-words.js";
import type { Tools } from "./tools-of-work.js";

/** A body that somebody keeps. */
const BYTES = 16_384;
/** A forgotten connection is dear: one for so many operations, and an end before the machine's. */
const OPERATIONS_PER_SOCKET = 5;
const MOST_SOCKETS = 2_000;

/** What to do after every operation. */
export function leakOf(leak: Leak | undefined, tools: Tools, redisUrl: string): () => void {
  switch (leak) {
    case undefined:
      return () => {};
    case "memory": {
      const kept: Buffer[] = [];
      return () => kept.push(Buffer.alloc(BYTES, 1));
    }
    case "timers":
      return () => setInterval(() => {}, 3_600_000);
    case "listeners":
      return () => tools.shutdown.signal.addEventListener("abort", () => tools.waiting);
    case "sockets":
      return forgottenSockets(new URL(redisUrl));
  }
}

function forgottenSockets({ hostname, port }: URL): () => void {
  const kept: Socket[] = [];
  let operations = 0;
  return () => {
    operations++;
    if (operations % OPERATIONS_PER_SOCKET !== 0 || kept.length >= MOST_SOCKETS) return;
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {}); // Cut by a disturbance: it is forgotten all the same.
    kept.push(socket);
  };
}
