// One of the two servers that are compared, the real or the simulated one, and what is told of it after each step: the reply as the lock reads it, and everything that is
// stored. What cannot be the same in both (names of lives, moments) is left out or cut to whole grains.
import type { Ballot } from "#lock/protocol/ballot.js";
import { incarnationIn } from "#lock/redis/admission-record.js";
import { causeOf, causeOfText } from "#lock/redis/causes.js";
import { keysOf } from "#lock/redis/keys.js";
import { admit, type NodeStatus, openAdmission, readFloor, type ScriptCall, status } from "#lock/redis/node-record.js";
import { type RequestScripts, requestScriptsFor } from "#lock/redis/request-scripts.js";
import { extend, grant, heal, inspect, type RequestKind, type RequestName, raise, release, seal } from "#lock/redis/requests.js";
import { GRAIN_MS, type Question, RETENTION_MS, type Step } from "./step.js";
import { readReplies, textOf } from "./wording.js";

export interface StoredKey {
  readonly key: string;
  readonly value: string | Readonly<Record<string, string>>;
  /** −1: without an end. */
  readonly leftMs: number;
}

/** A server that can be asked. Errors are thrown as the client throws them. */
export interface Server {
  eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  evalsha(sha: string, keyCount: number, text: readonly string[]): Promise<unknown>;
  wait(ms: number): Promise<void>;
  restart(memory: "kept" | "forgotten"): Promise<void>;
  flush(): Promise<void>;
  flushScripts(): Promise<void>;
  set(key: string, value: string): Promise<void>;
  dropField(key: string, field: string): Promise<void>;
  listen(channels: readonly string[]): Promise<void>;
  /** What was heard since the last time. */
  heard(): Promise<readonly string[]>;
  stored(): Promise<readonly StoredKey[]>;
}

const kinds = { grant, seal, extend, heal, release, inspect, raise };
const keys = keysOf("conformance");
/** Moments, and how new the server is. */
const unequal = new Set(["ticketAt", "claimUntil", "timeMs", "version"]);

export class Side {
  readonly #server: Server;
  readonly #lives: string[] = [];
  #scripts: RequestScripts | undefined;
  #belief: string | undefined;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Does it, and tells what came of it. */
  async take(step: Step): Promise<string> {
    const answer = await this.#answer(step).catch((error: unknown) => `error: ${causeOf(error)}`);
    const told = { answer, heard: await this.#server.heard(), stored: await this.#server.stored() };
    return this.#comparable(JSON.stringify(told, (name, value: unknown) => comparable(name, value)));
  }

  async #answer(step: Step): Promise<unknown> {
    const server = this.#server;
    switch (step.kind) {
      case "greet":
        return this.#greet();
      case "request":
        return this.#request(step.name, step.questions);
      case "status":
        return this.#run(status(keys));
      case "mark":
        return this.#run(openAdmission(keys, step.given));
      case "visit":
        return this.#run(readFloor(keys, step.epoch));
      case "admit":
        return this.#run(admit(keys, { ...step.given, runId: this.#lives.at(step.life === "present" ? -1 : -2) ?? "none" }));
      case "wait":
        return server.wait(step.ms);
      case "restart":
        await server.restart(step.forget ? "forgotten" : "kept");
        return this.#meet();
      case "flush":
        return server.flush();
      case "flush scripts":
        return server.flushScripts();
      case "set":
        return server.set(step.what === "lock" ? keys.lock(step.resource) : keys.token(step.resource), step.value);
      case "drop field":
        return server.dropField(keys.node, step.field);
      default:
        return server.listen([keys.lock(step.resource), keys.seat(step.resource, step.seat)]);
    }
  }

  /** As on a new connection: who is it, and here are the scripts for its life. */
  async #greet(): Promise<NodeStatus> {
    const known = await this.#meet();
    this.#scripts = requestScriptsFor({ ...known, version: "7.2.4" }, { failover: "one server", retentionMs: RETENTION_MS });
    for (const { source } of Object.values(this.#scripts)) await this.#server.eval(source, [keys.node], []).catch(refusedWithoutRequests);
    return known;
  }

  async #meet(): Promise<NodeStatus> {
    const known = await this.#run(status(keys));
    if (known.runId !== this.#lives.at(-1)) this.#lives.push(known.runId);
    return known;
  }

  async #request(name: RequestName, questions: readonly [Question, ...Question[]]): Promise<readonly unknown[]> {
    const kind = kinds[name] as unknown as RequestKind<unknown, Ballot>;
    const { text, keyCount } = textOf(kind, keys, questions);
    // As the lock does where one resource is asked for once.
    const believed = name === "grant" && text.length === 5 ? this.#belief : undefined;
    const words = believed === undefined ? text : [...text, believed];
    const reply = await this.#server.evalsha(this.#scripts?.[name].sha ?? "none", keyCount, words);
    const { belief, replies } = readReplies(reply, questions.length, believed);
    if (belief !== undefined) this.#belief = belief === "" ? undefined : belief;
    const epoch = incarnationIn(belief ?? "");
    const ballots = replies.map((one, i) => {
      if (one === null) return "not believed";
      if (typeof one === "string") return `failed: ${causeOfText(one)}`;
      return kind.read({ node: "n", epoch }, one, asked(name, questions[i]));
    });
    return [belief, ...ballots];
  }

  async #run<Reply>(call: ScriptCall<Reply>): Promise<Reply> {
    return call.read(await this.#server.eval(call.source, call.keys, call.args));
  }

  #comparable(told: string): string {
    return this.#lives.reduce((text, life, i) => text.replaceAll(life, `life ${i}`), told);
  }
}

/** A request for one resource is asked by its name alone. */
export function asked(name: RequestName, question: Question | undefined): unknown {
  return name === "inspect" ? question?.resource : question;
}

function comparable(name: string, value: unknown): unknown {
  if (unequal.has(name)) return undefined;
  if (typeof value !== "number" || value < 0) return value;
  // What is left shrinks while the real server works; what is over grows, and a server's life is told in whole seconds.
  if (name === "remainingMs" || name === "leftMs") return Math.ceil(value / GRAIN_MS);
  return name === "lostForMs" ? Math.round(value / GRAIN_MS) : value;
}

/** A script that is only to be remembered may have nothing to say without requests. */
function refusedWithoutRequests(): void {}
