// The nodes of a row of the lock, and the processes in which libraries run that ask them.
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { AskedChild, RedisFleet, type RedisNode } from "@palisade/testkit";
import type { Contestant, Round } from "../measure/comparison.js";
import type { Processes } from "../measure/cpu.js";
import type { Context } from "../measure/part.js";
import { sum } from "../measure/results.js";
import type { Ask, Opening } from "./client.js";
import { byKey, type Settings, usualSettings } from "./libraries.js";

export type LockProcess = AskedChild<Ask>;

const program = fileURLToPath(new URL("client.js", import.meta.url));

interface Nodes {
  readonly nodes?: number;
  /** By which way it is asked; without a proxy unless a row slows it down. */
  readonly urlOf?: (node: RedisNode) => string;
}

export class LockBench implements AsyncDisposable {
  readonly fleet: RedisFleet;
  readonly #urls: readonly string[];
  /** The checkout that the entrant "before" comes from. */
  readonly #beside: string | undefined;
  readonly #processes: LockProcess[] = [];

  private constructor(fleet: RedisFleet, urls: readonly string[], beside: string | undefined) {
    this.fleet = fleet;
    this.#urls = urls;
    this.#beside = beside;
  }

  /** Only the network and the scripts are compared: no log, and no proxy where none is measured. */
  static async start(context: Context, { nodes = 5, urlOf = ({ directUrl }) => directUrl }: Nodes = {}): Promise<LockBench> {
    const fleet = await RedisFleet.start({
      nodes,
      provider: "local",
      clock: "real",
      config: { appendonly: "no" },
    });
    const info = String(await fleet.node("n1").cli("INFO", "server"));
    context.note("redis", /(?:valkey|redis)_version:(\S+)/.exec(info)?.[1] ?? "unknown");
    return new LockBench(fleet, fleet.nodes.map(urlOf), context.beside);
  }

  /** So many new ones. */
  processes(count: number): readonly LockProcess[] {
    const own = Array.from({ length: count }, () => new AskedChild<Ask>(program, { name: "a process with a lock library" }));
    this.#processes.push(...own);
    return own;
  }

  /** Connects a library in each of the processes. */
  async open(
    own: readonly LockProcess[],
    key: string,
    { urls = this.#urls, lockers, as, ...more }: Partial<Settings> & Opening & { readonly urls?: readonly string[] } = {},
  ): Promise<void> {
    const from = key === "before" && this.#beside !== undefined ? { from: this.#beside } : {};
    const settings = { ...usualSettings, ...byKey(key).settings, ...more, ...from };
    await Promise.all(own.map((one) => one.ask({ kind: "open", key, urls, settings, lockers, as })));
  }

  contestant(key: string, own: readonly LockProcess[], round: (seconds: number) => Promise<Round>): Contestant {
    const { name, library } = byKey(key);
    return { name, kind: library.kind, does: library.does, round, processes: this.processesOf(own) };
  }

  /** Whose processor time is counted. */
  processesOf(own: readonly LockProcess[]): Processes {
    return {
      client: () => own.map(({ pid }) => pid),
      redis: () => this.fleet.nodes.flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((one) => one.kill()));
    await this.fleet.stop();
  }
}

/** "before" takes part where another checkout was given. */
export function withBefore(keys: readonly string[], { beside }: Context): readonly string[] {
  return beside === undefined ? keys : keys.flatMap((key) => (key === "palisade" ? ["palisade", "before"] : [key]));
}

/** Told by MONITOR, which slows the node down: it counts outside of timed rounds. */
interface Monitor {
  count: number;
  readonly socket: Socket;
}

/** One line per command: "+1700000000.123456 [0 127.0.0.1:5000] "EVALSHA" …", or [0 lua]. */
const SENT = /^\+[0-9.]+ \[[0-9]+ (?!lua\])/gm;

async function monitor(url: string): Promise<Monitor> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const counted: Monitor = { count: 0, socket };
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("data", () => resolve());
    socket.write("MONITOR\r\n");
  });
  let rest = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    const end = text.lastIndexOf("\n") + 1;
    counted.count += `${rest}${text.slice(0, end)}`.match(SENT)?.length ?? 0;
    rest = end === 0 ? rest + text : text.slice(end);
  });
  return counted;
}

/** How many commands clients send to all nodes together; those that a script runs are not among them. */
export async function countCommands<T>(fleet: RedisFleet, work: () => Promise<T>): Promise<{ commands: number; result: T }> {
  const monitors = await Promise.all(fleet.nodes.map(({ directUrl }) => monitor(directUrl)));
  const result = await work();
  const commands = monitors.reduce((total, { count }) => total + count, 0);
  for (const { socket } of monitors) socket.destroy();
  return { commands, result };
}

/** What a section of INFO counts, of all nodes together: the groups of the pattern. */
export async function countedBy(fleet: RedisFleet, section: string, pattern: RegExp): Promise<readonly number[]> {
  const all = await Promise.all(fleet.nodes.map((node) => node.cli("INFO", section)));
  const words = all.map((info) => pattern.exec(String(info))?.slice(1) ?? []);
  return (words[0] ?? []).map((_, group) => sum(words.map((counts) => Number(counts[group]))));
}
