// Watches whether this process runs: a timer that comes late says from when to when it did not. It cannot tell why.
import { nowMs, type Stall } from "../history/lease-record.js";

const BEAT_MS = 5;
/** What is shorter is the ordinary lateness of timers. */
const NOTICED_MS = 10;

export function watchStalls(client: number, onStall: (stall: Stall) => void): () => void {
  let lastAt = nowMs();
  const timer = setInterval(() => {
    const at = nowMs();
    if (at - lastAt > BEAT_MS + NOTICED_MS) onStall({ client, fromAt: lastAt + BEAT_MS, untilAt: at });
    lastAt = at;
  }, BEAT_MS).unref();
  return () => clearInterval(timer);
}
