// The simulated server, for the comparison.
import { Memory } from "../server/memory.js";
import { type Peer, type ServerSettings, SimServer } from "../server/sim-server.js";
import type { Server, StoredKey } from "./compared-server.js";

export class SimulatedServer implements Server {
  readonly #server: SimServer;
  #nowMs = 0;
  #listener: Peer | undefined;
  #heard: string[] = [];

  constructor(other: Pick<ServerSettings, "edit" | "commands">) {
    const clock = { rate: 1, aheadMs: 1_700_000_000_000 };
    this.#server = new SimServer({
      name: "sim",
      now: () => this.#nowMs,
      clock,
      appendfsync: "always",
      ...other,
    });
  }

  async eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#server.eval(source, keys.length, [...keys, ...args]);
  }

  async evalsha(sha: string, keyCount: number, words: readonly string[]): Promise<unknown> {
    return this.#server.evalsha(sha, keyCount, words);
  }

  async wait(ms: number): Promise<void> {
    this.#nowMs += ms;
  }

  async restart(memory: "kept" | "forgotten"): Promise<void> {
    this.#server.end();
    this.#listener = undefined;
    this.#server.start(memory === "kept" ? this.#server.memory : new Memory());
  }

  async flush(): Promise<void> {
    this.#server.memory.clear();
  }

  async flushScripts(): Promise<void> {
    this.#server.flushScripts();
  }

  async listen(channels: readonly string[]): Promise<void> {
    const news = (channel: string, text: string): void => {
      this.#heard.push(`${channel}: ${text}`);
    };
    this.#listener ??= this.#server.welcome((id) => ({ id, channels: new Set(), ended() {}, news }));
    this.#server.subscribe(this.#listener, channels);
  }

  async heard(): Promise<readonly string[]> {
    return this.#heard.splice(0);
  }

  async stored(): Promise<readonly StoredKey[]> {
    const { memory } = this.#server;
    return [...memory.alive(this.#server.wallMs())]
      .map(({ key, value, leftMs }) => ({
        key,
        value: value instanceof Map ? sorted(Object.fromEntries(value)) : value,
        leftMs,
      }))
      .sort((a, b) => (a.key < b.key ? -1 : 1));
  }
}

export function sorted(fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)));
}
