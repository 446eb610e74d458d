// Watches whether this process runs: a timer that is late tells from when to when it did not.
import { nowMs, type Pause } from "../history/records.js";

const EVERY_MS = 5;
/** Shorter pauses are the ordinary lateness of timers. */
const NOTICED_MS = 10;

export function watchPauses(client: number, onPause: (pause: Pause) => void): () => void {
  let lastAt = nowMs();
  const timer = setInterval(() => {
    const at = nowMs();
    if (at - lastAt > EVERY_MS + NOTICED_MS) onPause({ client, fromAt: lastAt + EVERY_MS, untilAt: at });
    lastAt = at;
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}
