// What a process of the soak says of itself: memory, handles, and how late its event loop is. It
// runs inside the measured process, so it keeps nothing that grows, and it never asks for a
// collection. The shipped gateway loads it before its program (node --import).
import { readdirSync, readFileSync } from "node:fs";
import { constants, monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { getHeapCodeStatistics } from "node:v8";

/**
 * By the name of the curve; memory in megabytes. `kept` and `code` are what the last full collection
 * left, objects and compiled code, absent before the first; `handles` is everything that is active
 * but timers; `lag` is the 99th percentile in milliseconds since the last reading.
 */
export type SelfReading = Readonly<Record<string, number>>;

const MB = 1e6;
const timerKinds = new Set(["Timeout", "Immediate", "TickObject", "Microtask"]);
const delay = monitorEventLoopDelay({ resolution: 10 });
let left: { readonly kept: number; readonly code: number } | undefined;

// The callback comes a turn after the collection; what was made since is little. V8 compiles and
// forgets hot functions again and again for hours, by a megabyte up and down, which would hide a
// leak of objects or look like one: without that code, what is left after a collection is steady to
// one part in a hundred.
const collections = new PerformanceObserver((list) => {
  const isFull = list.getEntries().some((entry) => kindOf(entry) === constants.NODE_PERFORMANCE_GC_MAJOR);
  if (!isFull) return;
  // V8 walks the whole heap to tell this: not more often than it collects.
  const code = getHeapCodeStatistics().code_and_metadata_size / MB;
  left = { kept: process.memoryUsage().heapUsed / MB - code, code };
});

/** Node's types do not know the detail of a collection. */
function kindOf(entry: PerformanceEntry & { readonly detail?: { readonly kind?: number } }): number | undefined {
  return entry.detail?.kind;
}

export function startProbe(): void {
  delay.enable();
  collections.observe({ entryTypes: ["gc"] });
}

export function readSelf(): SelfReading {
  const { rss, external } = process.memoryUsage();
  const active = process.getActiveResourcesInfo();
  const timers = active.filter((kind) => timerKinds.has(kind)).length;
  const lag = Math.max(0, delay.percentile(99) / 1e6 - 10);
  delay.reset();
  const memory = { rss: rss / MB, external: external / MB };
  return { ...memory, ...left, handles: active.length - timers, timers, ...fromProc(), lag };
}

function fromProc(): { fds?: number; threads?: number } {
  if (process.platform !== "linux") return {};
  // One of them is the folder that is being read.
  const fds = readdirSync("/proc/self/fd").length - 1;
  const threads = Number(/^Threads:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
  return { fds, threads };
}

const everyMs = process.env.SOAK_READING_EVERY_MS;
if (everyMs !== undefined) {
  startProbe();
  setInterval(() => process.send?.(readSelf()), Number(everyMs)).unref();
}
