// One of the two servers that are compared, and the result of each step on it: the answer and all
// stored data. run_ids are replaced, and times are rounded to grains.
import { createHash } from "node:crypto";
import * as lua from "#lock/redis/lua.generated.js";
import { type RequestScripts, requestScriptsFor } from "#lock/redis/requests.js";
import { keysOf } from "#lock/redis/script-call.js";
import { GRAIN_MS, NAMESPACE, NOTED, PAST_RUN, PRESENT_RUN, RETENTION_MS, type Step } from "./step.js";

export interface StoredKey {
  readonly key: string;
  readonly value: string | Readonly<Record<string, string>>;
  /** −1: without an end. */
  readonly leftMs: number;
}

/** A server under comparison. Errors are thrown as the client throws them. */
export interface Server {
  eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  evalsha(sha: string, keyCount: number, words: readonly string[]): Promise<unknown>;
  wait(ms: number): Promise<void>;
  restart(memory: "kept" | "forgotten"): Promise<void>;
  flush(): Promise<void>;
  flushScripts(): Promise<void>;
  listen(channels: readonly string[]): Promise<void>;
  /** Messages since the last call. */
  heard(): Promise<readonly string[]>;
  stored(): Promise<readonly StoredKey[]>;
}

const keys = keysOf(NAMESPACE, "inbox1");
const nodeScripts = {
  status: lua.statusScript,
  openAdmission: lua.openAdmissionScript,
  readFloor: lua.readFloorScript,
  admit: lua.admitScript,
  readmit: lua.readmitScript,
  promise: lua.promiseScript,
  accept: lua.acceptScript,
  enter: lua.enterScript,
  mark: lua.markScript,
};

export class ComparedServer {
  readonly #server: Server;
  readonly #runIds: string[] = [];
  #scripts: RequestScripts | undefined;
  /** The field `admitted` of the last reply. */
  #admitted: string | undefined;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Takes a step and returns its result as text. */
  async take(step: Step): Promise<string> {
    const answer = await this.#answer(step).catch((error: unknown) => `error ${withoutPlace((error as Error).message).split(" ", 1)[0]}`);
    const result = { answer, heard: await this.#server.heard(), stored: await this.#server.stored() };
    const text = JSON.stringify(result, (_, value: unknown) => comparable(value));
    // In a record 39 characters follow a mark; the digit behind them may be the one that was cut.
    const marked = /(?<="[+-])(\w{39})/g;
    return this.#runIds.reduce(
      (sofar, runId, i) => sofar.replace(marked, (cut) => (runId.startsWith(cut) ? `run ${i}, cut` : cut)).replaceAll(runId, `run ${i}`),
      text,
    );
  }

  async #answer(step: Step): Promise<unknown> {
    const server = this.#server;
    switch (step.kind) {
      case "greet":
        return this.#greet();
      case "request":
        return this.#request(step);
      case "node script":
        return this.#nodeScript(step);
      case "lua":
        return server.eval(step.source, [], step.args);
      case "wait":
        return server.wait(step.ms);
      case "restart":
        await server.restart(step.memory);
        return this.#meet();
      case "flush":
        return server.flush();
      case "flush scripts":
        return server.flushScripts();
      default:
        return server.listen([`{${NAMESPACE}}:inbox:${step.inbox}`]);
    }
  }

  async #nodeScript({ name, args }: Step & { readonly kind: "node script" }): Promise<unknown> {
    const isNoted = args.includes(NOTED);
    const noted = isNoted ? await this.#server.eval("return redis.call('HGET', KEYS[1], 'admitted') or ''", [keys.node], []) : "";
    const words = args.map((word) => (word === NOTED ? String(noted) : this.#runIdIn(word)));
    const reply = await this.#server.eval(nodeScripts[name], name === "mark" ? [keys.node, keys.marks] : [keys.node], words);
    if (name !== "openAdmission" || !Array.isArray(reply)) return reply;
    // Times since the admission was opened and since the server was started.
    return reply.map((word, i) => (i === 4 || i === 5 ? Math.round(Number(word) / GRAIN_MS) : word));
  }

  /** As on a new connection: asks for the status and loads the scripts for this life. */
  async #greet(): Promise<unknown> {
    const status = await this.#meet();
    const server = { runId: this.#runIds.at(-1) ?? "" };
    this.#scripts = withLongReservations(requestScriptsFor(server, RETENTION_MS));
    const loads = Object.values(this.#scripts).map(({ source }) => this.#server.eval(source, [keys.node], []).catch(String));
    await Promise.all(loads);
    return status;
  }

  async #meet(): Promise<readonly unknown[]> {
    const status = (await this.#server.eval(lua.statusScript, [keys.node], [])) as readonly string[];
    const [runId = ""] = status;
    if (runId !== this.#runIds.at(-1)) this.#runIds.push(runId);
    return status;
  }

  async #request({ name, resources, args }: Step & { readonly kind: "request" }): Promise<unknown> {
    const locks = resources.flatMap((resource) =>
      name === "release" ? [keys.lock(resource)] : [keys.lock(resource), keys.token(resource)],
    );
    const words = name === "release" ? locks : [keys.node, ...locks];
    // As the lock does for a single request for a single resource.
    const confirms = name === "grant" && words.length === 3 && args.length === 3 && this.#admitted !== undefined;
    const said = confirms ? [...args, this.#admitted as string] : args;
    const reply = await this.#server.evalsha(this.#scripts?.[name].sha ?? "none", words.length, [...words, ...said]);
    if (name !== "release" && Array.isArray(reply)) this.#admitted = String(reply[0]);
    return reply;
  }

  #runIdIn(word: string): string {
    if (word === PRESENT_RUN) return this.#runIds.at(-1) ?? "none";
    return word === PAST_RUN ? (this.#runIds.at(-2) ?? "none") : word;
  }
}

/** Nothing may end while a real server is asked. */
function withLongReservations(scripts: RequestScripts): RequestScripts {
  const longer = Object.entries(scripts).map(([name, script]) => {
    const source = script.source.replace(/local RESERVED_MS = \d+\n/, `local RESERVED_MS = ${3 * GRAIN_MS + GRAIN_MS / 2}\n`);
    return [name, { ...script, source, sha: createHash("sha1").update(source).digest("hex") }];
  });
  return Object.fromEntries(longer) as RequestScripts;
}

/** Remaining and elapsed times change while a real server works; clocks and versions differ. */
function comparable(value: unknown): unknown {
  if (typeof value === "string" && /^\d+\.\d+\.\d+$/.test(value)) return "a version";
  if (typeof value === "string" && /^\d{45}$/.test(value)) return "a ticket";
  if (typeof value === "string" && !/^\d+$/.test(value)) return withoutPlace(value);
  if (typeof value !== "number" && typeof value !== "string") return value;
  const number = Number(value);
  if (number >= 1_000 && number < 1e9) return Math.floor((number + GRAIN_MS / 4) / GRAIN_MS);
  return number > 1.5e12 && number < 3e12 ? "a moment" : value;
}

/** Redis puts the script's line before a thrown error. */
function withoutPlace(message: string): string {
  return message.replace(/^user_script:\d+: /, "");
}
