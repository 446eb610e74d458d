// What a process says of itself: memory, handles, and how late its event loop is. It runs inside
// the measured process, so it keeps nothing that grows, and it never asks for a collection.
import { readdirSync, readFileSync } from "node:fs";
import { constants, monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { getHeapCodeStatistics } from "node:v8";

export interface SelfReading {
  readonly rssMb: number;
  readonly heapMb: number;
  /** What the last full collection left: objects, and compiled code. Absent before the first. */
  readonly keptMb?: number;
  readonly codeMb?: number;
  readonly externalMb: number;
  readonly arrayBuffersMb: number;
  /** Sockets, pipes, files, requests under way: everything that is active but timers. */
  readonly handles: number;
  readonly timers: number;
  readonly byKind: Readonly<Record<string, number>>;
  /** Absent where there is no /proc. */
  readonly fds?: number;
  readonly threads?: number;
  /** The 99th percentile since the last reading. */
  readonly lagMs: number;
}

const MB = 1e6;
const timerKinds = new Set(["Timeout", "Immediate", "TickObject", "Microtask"]);
const delay = monitorEventLoopDelay({ resolution: 10 });
let left: { readonly keptMb: number; readonly codeMb: number } | undefined;

// The callback comes a turn after the collection; what was made since is little. V8 compiles and
// forgets hot functions again and again for hours, by a megabyte up and down, which would hide a
// leak of objects or look like one: without that code, what is left after a collection is steady to
// one part in a hundred.
const collections = new PerformanceObserver((list) => {
  const isFull = list.getEntries().some((entry) => kindOf(entry) === constants.NODE_PERFORMANCE_GC_MAJOR);
  if (!isFull) return;
  // V8 walks the whole heap to tell this: not more often than it collects.
  const codeMb = getHeapCodeStatistics().code_and_metadata_size / MB;
  left = { keptMb: process.memoryUsage().heapUsed / MB - codeMb, codeMb };
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
  const memory = process.memoryUsage();
  const byKind: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) byKind[kind] = (byKind[kind] ?? 0) + 1;
  const counted = Object.entries(byKind);
  const timers = counted.reduce((sum, [kind, count]) => (timerKinds.has(kind) ? sum + count : sum), 0);
  const lagMs = Math.max(0, delay.percentile(99) / 1e6 - 10);
  delay.reset();
  return {
    rssMb: memory.rss / MB,
    heapMb: memory.heapUsed / MB,
    ...left,
    externalMb: memory.external / MB,
    arrayBuffersMb: memory.arrayBuffers / MB,
    handles: counted.reduce((sum, [, count]) => sum + count, 0) - timers,
    timers,
    byKind,
    ...fromProc(),
    lagMs,
  };
}

function fromProc(): { fds?: number; threads?: number } {
  if (process.platform !== "linux") return {};
  // One of them is the folder that is being read.
  const fds = readdirSync("/proc/self/fd").length - 1;
  const threads = Number(/^Threads:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
  return { fds, threads };
}
