// Processor time of the processes that take part, from /proc: on a machine with as few cores as
// contestants it is what can still be compared when other work runs beside the benchmark.
import { existsSync, readdirSync, readFileSync } from "node:fs";

/**
 * Whose time: the library or load that asks, the nodes, the HTTP server, all of Postgres, and the
 * workers where that is the coordinator of a Citus cluster.
 */
export type Role = "client" | "redis" | "server" | "postgres" | "workers";

/** The process ids of each role, asked at every reading, because Postgres forks. */
export type Processes = Partial<Readonly<Record<Role, () => readonly number[]>>>;

/** Nanoseconds or ticks by thread. */
type Reading = ReadonlyMap<string, number>;

const hasProc = existsSync("/proc/self/stat");
const hasSchedstat = existsSync("/proc/self/schedstat");
/** What Linux counts in since the days of 100 Hz, in microseconds. */
const TICK_US = 10_000;

export const processorTimes = hasSchedstat
  ? "/proc/PID/task/*/schedstat (nanoseconds)"
  : hasProc
    ? "/proc/PID/stat (ticks of 10 ms)"
    : "none: this system has no /proc";

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return ""; // It has ended.
  }
}

/** What follows the name in /proc/PID/stat, which may contain anything. */
function statOf(pid: number | string): readonly string[] {
  const line = read(`/proc/${pid}/stat`);
  return line.slice(line.lastIndexOf(")") + 2).split(" ");
}

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function readTimes(pids: readonly number[]): Reading {
  const times = new Map<string, number>();
  for (const pid of pids) {
    if (hasSchedstat) {
      for (const thread of threadsOf(pid)) {
        const text = read(`/proc/${pid}/task/${thread}/schedstat`);
        if (text !== "") times.set(thread, Number.parseInt(text, 10) / 1_000);
      }
    } else {
      const fields = statOf(pid);
      if (fields.length > 12) times.set(String(pid), (Number(fields[11]) + Number(fields[12])) * TICK_US);
    }
  }
  return times;
}

/** Counts from now; the function says how many microseconds each role has used since. */
export function countProcessorTime(processes: Processes): () => Partial<Record<Role, number>> {
  if (!hasProc) return () => ({});
  const roles = Object.entries(processes) as [Role, () => readonly number[]][];
  // The client first after, and last before: to look for the processes of Postgres takes this
  // process some time, which is no part of the work where the client is this process.
  const before = new Map([...roles].reverse().map(([role, pids]) => [role, readTimes(pids())]));
  return () =>
    Object.fromEntries(
      roles.map(([role, pids]) => {
        const earlier = before.get(role);
        const used = [...readTimes(pids())].map(([thread, time]) => time - (earlier?.get(thread) ?? 0));
        return [role, used.reduce((total, time) => total + time, 0)];
      }),
    );
}

/** The process and its children: all of a Postgres, whose backends are children of one process. */
export function withChildren(parent: number): readonly number[] {
  if (!hasProc) return [parent];
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(statOf(name)[1]) === parent);
  return [parent, ...children.map(Number)];
}

/** Microseconds on the monotonic clock that all processes of a machine share. */
export function nowUs(): number {
  return Number(process.hrtime.bigint()) / 1_000;
}
