// A set-up file of vitest: fails every test file that leaves child processes or connections to the shared
// servers behind. It watches this process from its first file on.
import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { aroundAll } from "vitest";
import { sharedServers } from "./fixtures.js";

// A socket or a process that has been told to end needs a moment; one that has not will not go by
// itself. The moment is counted in looks and not by a clock: this process may stand still, and when
// it goes on it would report what has ended meanwhile.
const LOOKS = 400;
const POLL_MS = 5;

interface Connection {
  readonly port: number;
  /** The stack of the code that opened it. */
  readonly openedAt: string;
}

interface Watch {
  readonly children: Set<ChildProcess>;
  /** Every outgoing connection that is open or being opened. */
  readonly sockets: Map<Socket, Connection>;
}

// One watch for the process, however often this module is loaded: per file, from src and dist.
const key = Symbol.for("palisade.testkit.leaks");
const holder = globalThis as unknown as Record<symbol, Watch | undefined>;

/** The lines of the stack without this file and without Node's own. */
function opener(): string {
  const usual = Error.stackTraceLimit;
  Error.stackTraceLimit = 40; // A client library may be many calls deep.
  const lines = new Error().stack?.split("\n").slice(1) ?? [];
  Error.stackTraceLimit = usual;
  return lines
    .filter((line) => !line.includes("node:") && !line.includes("vitest/leak-guard."))
    .slice(0, 8)
    .join("\n");
}

/** connect() takes a port, options, or an array of options; a socket knows its port only later. */
function targetPort([first]: readonly unknown[]): number {
  const target: unknown = Array.isArray(first) ? first[0] : first;
  return Number(typeof target === "object" && target !== null && "port" in target ? target.port : target);
}

function trackSockets(sockets: Watch["sockets"]): void {
  // Node announces net.connect() on a channel of diagnostics_channel, but not new
  // Socket().connect(), which is what pg does.
  const connect = Socket.prototype.connect;
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    sockets.set(this, { port: targetPort(args), openedAt: opener() });
    this.once("close", () => sockets.delete(this));
    return Reflect.apply(connect, this, args) as Socket;
  } as typeof connect;
}

function trackChildren(children: Watch["children"]): void {
  subscribe("child_process", (message) => {
    const child = (message as { process: ChildProcess }).process;
    children.add(child);
    child.once("exit", () => children.delete(child));
    child.once("error", () => {
      if (child.pid === undefined) children.delete(child); // It never started.
    });
  });
}

/** From its first call on this process remembers what it opens. */
function watching(): Watch {
  const known = holder[key];
  if (known !== undefined) return known;
  const watch: Watch = { children: new Set(), sockets: new Map() };
  holder[key] = watch;
  trackSockets(watch.sockets);
  trackChildren(watch.children);
  return watch;
}

function leaksNow({ children, sockets }: Watch, ports: ReadonlySet<number>): string[] {
  // Our own guards, which end with this process.
  const living = [...children].filter((child) => !child.spawnargs[0]?.startsWith("palisade-"));
  const open = [...sockets.values()].filter(({ port }) => ports.has(port));
  return [
    ...living.map((child) => `process ${child.pid}: ${child.spawnargs.join(" ").slice(0, 200)}`),
    ...open.map(({ port, openedAt }) => `connection to port ${port}, opened\n${openedAt}`),
  ];
}

/**
 * What is still there after a moment's grace: child processes, and connections to these ports. It
 * is told once: the next file of this process did not open it.
 */
async function leaksOf(watch: Watch, ports: ReadonlySet<number>): Promise<string[]> {
  for (let look = 1; ; look += 1) {
    const leaks = leaksNow(watch, ports);
    if (leaks.length === 0) return [];
    if (look === LOOKS) {
      watch.children.clear();
      watch.sockets.clear();
      return leaks;
    }
    await sleep(POLL_MS);
  }
}

const watch = watching();

// Around the whole file: only then have its afterAll hooks and its file-wide fixtures had their turn.
aroundAll(async (runFile) => {
  await runFile();
  const { postgresUrl, workers, redisUrls } = sharedServers();
  const urls = [postgresUrl, ...workers.map(({ adminUrl }) => adminUrl), ...redisUrls];
  const leaks = await leaksOf(watch, new Set(urls.map((url) => Number(new URL(url).port))));
  if (leaks.length > 0) throw new Error(`this file leaves behind:\n  ${leaks.join("\n  ")}`);
});
