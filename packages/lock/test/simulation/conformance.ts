// What both servers are asked: the lock's scripts, single commands from within a script, Lua
// expressions, passing time, and losses of memory. Waits are whole minutes and times to live half a
// minute more, so that nothing expires within the quarter of a minute that a real server may be
// slower.

import fc from "fast-check";
import { fingerprintOf, keysOf } from "#lock/protocol/verbs.js";
import { scriptsFor, type TaughtScripts } from "#lock/redis/connection.js";
import { scripts } from "#lock/redis/lua.generated.js";
import { Memory } from "./commands.js";
import { type Peer, type ServerSettings, SimServer } from "./sim-server.js";

export const GRAIN_MS = 60_000;
export const RETENTION_MS = 6 * GRAIN_MS + GRAIN_MS / 2;

/** Scripts of requests; they are loaded for one life of the server. */
export type RequestName = "grant" | "claim" | "seal" | "extend" | "heal" | "release" | "inspect" | "raise";

export type NodeScriptName = "status" | "openAdmission" | "readFloor" | "admit" | "readmit" | "promise" | "accept" | "enter" | "mark";

export type Step =
  | { readonly kind: "greet" }
  | {
      readonly kind: "request";
      readonly name: RequestName;
      readonly resources: readonly string[];
      readonly args: readonly string[];
    }
  | {
      readonly kind: "node script";
      readonly name: NodeScriptName;
      readonly args: readonly string[];
    }
  | { readonly kind: "lua"; readonly source: string; readonly args: readonly string[] }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "restart"; readonly memory: "kept" | "forgotten" }
  | { readonly kind: "flush" }
  | { readonly kind: "flush scripts" }
  | { readonly kind: "listen"; readonly inbox: string };

/** Placeholders for run_ids. */
export const PRESENT_RUN = "<present>";
export const PAST_RUN = "<past>";
/** For the field admitted as it stands. */
export const NOTED = "<noted>";
export const NAMESPACE = "conformance";

const lockKey = (resource: string): string => `{${NAMESPACE}}:lock:${resource}`;
const tokenKey = (resource: string): string => `{${NAMESPACE}}:token:${resource}`;
const NODE_KEY = `{${NAMESPACE}}:node`;

const resource = fc.constantFrom("a", "b", "c:d");
/** Two of the lock's own length, and a shorter one. */
const owner = fc.constantFrom("one-------------------", "two-------------------", "three");
const nonce = fc.constantFrom("nonce1", "nonce2");
const token = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(1, 900, 999_999_999_999_998, 999_999_999_999_999));
const ttlMs = fc.integer({ min: 0, max: 4 }).map((grains) => String(grains * GRAIN_MS + GRAIN_MS / 2));

/** The arguments of one request. */
interface Words {
  readonly owner: string;
  readonly token: number;
  readonly turn: number;
  readonly choice: boolean;
  readonly inbox: string;
}

const wordsOf: Readonly<Record<RequestName, (of: Words) => readonly string[]>> = {
  grant: ({ owner: name }) => [`${name}|label of ${name}`],
  claim: ({ owner: name, turn, choice, inbox }) => {
    const reserveMs = 3 * GRAIN_MS + GRAIN_MS / 2;
    return [
      `${name}|label of ${name}`,
      "7",
      String(turn * GRAIN_MS),
      `${inbox}:set`,
      String(reserveMs),
      choice ? "two-------------------|" : "",
    ];
  },
  seal: ({ owner: name, token: number }) => [`${name}|`, String(number)],
  extend: ({ owner: name }) => [`${name}|`],
  heal: ({ owner: name, token: number }) => [`${name}|label of ${name}`, String(number)],
  release: ({ owner: name, turn }) => [`${turn % 5 === 0 ? "~inbox1:set" : name}|${turn % 4 === 0 ? 0 : 1}`],
  inspect: ({ choice, inbox }) => [choice ? "" : `${inbox}:set`],
  raise: ({ owner: name, token: number, turn, choice }) => [String(number), choice ? fingerprintOf(name) : turn % 2 === 0 ? "whoever" : ""],
};
const sharing = new Set<RequestName>(["grant", "claim", "extend", "heal"]);

const inboxes = fc.constantFrom("inbox1", "inbox2", "inbox3");

const request = fc
  .record({
    name: fc.constantFrom<RequestName>(
      "grant",
      "grant",
      "grant",
      "claim",
      "claim",
      "seal",
      "extend",
      "heal",
      "release",
      "release",
      "inspect",
      "raise",
    ),
    resources: fc.uniqueArray(resource, { minLength: 1, maxLength: 2 }),
    requests: fc.array(fc.record({ owner, token, choice: fc.boolean() }), { minLength: 1, maxLength: 3 }),
    ttlMs,
    turn: fc.nat(40),
    inbox: inboxes,
  })
  .map(({ name, resources, requests, ttlMs, turn, inbox }): Step => {
    const asked = name === "inspect" || name === "raise" ? resources.slice(0, 1) : resources;
    const args = requests.flatMap((each) => wordsOf[name]({ ...each, turn, inbox }));
    return {
      kind: "request",
      name,
      resources: requests.flatMap(() => asked),
      args: [...(sharing.has(name) ? [ttlMs] : []), ...args],
    };
  });

const openAdmission = fc
  .record({
    nonce,
    id: fc.constantFrom("id1", "id2"),
    // Later than any clock. Other tests on real servers cover which of two clocks is taken.
    wallMs: fc.constantFrom("4000000000007", "4000000000070"),
    maxTtlMs: fc.constantFrom("10000", "20000"),
  })
  .map((given) => [given.nonce, given.id, given.wallMs, given.maxTtlMs, "0", ""]);

const admit = fc
  .record({
    runId: fc.constantFrom(PRESENT_RUN, PRESENT_RUN, PRESENT_RUN, PAST_RUN),
    nonce,
    floor: fc.oneof(fc.nat(60), fc.constant(999_999_999_999_990)).map(String),
    epoch: fc.constantFrom("epoch1", "epoch2"),
    id: fc.constantFrom("id1", "id2"),
  })
  .map((given) => [given.runId, given.nonce, given.floor, given.epoch, given.id, "fleet", "1", "1-g", "members", ""]);

const readmit = admit.map((words) => words.slice(0, 4));
const noted = fc.constantFrom(NOTED, NOTED, NOTED, "another");
const ballot = fc.constantFrom("10", "20", "30");
const promise = fc.tuple(noted, ballot);
const accept = fc
  .tuple(noted, ballot, fc.constantFrom("members2", "members3"), fc.constantFrom("0", String(3 * GRAIN_MS + GRAIN_MS / 2)))
  .map((words) => [...words, "epoch5"]);
const enter = fc
  .record({ generation: fc.constantFrom("2", "3"), floor: fc.constantFrom("1", "50"), since: fc.constantFrom("1", "1", "2") })
  .map(({ generation, floor, since }) => [`${generation}-g`, generation, "members2", floor, "epoch6", since]);
const mark = fc.constantFrom([], ["store", "0"], ["store", "7"], ["store", "5", "other", "1"]);

const nodeScript = (name: NodeScriptName, args: fc.Arbitrary<readonly string[]>): fc.Arbitrary<Step> =>
  args.map((words) => ({ kind: "node script", name, args: words }));

const stringKey = fc.oneof(resource.map(lockKey), resource.map(tokenKey));
const key = fc.oneof({ weight: 6, arbitrary: stringKey }, { weight: 1, arbitrary: fc.constant(NODE_KEY) });
const value = fc.constantFrom("7", "999999999999999", "not a number", "-3", "stranger", "one-------------------|label", "");
const field = fc.constantFrom("floor", "admitted", "id");
const channel = inboxes.map((inbox) => `{${NAMESPACE}}:inbox:${inbox}`);

const command = fc.oneof(
  ...["GET", "INCR", "DECR", "DEL", "PTTL"].map((name) => fc.tuple(fc.constant(name), key)),
  fc.tuple(fc.constant("SET"), stringKey, value),
  fc.tuple(fc.constant("SET"), stringKey, value, fc.constant("PX"), ttlMs),
  fc.tuple(fc.constant("SET"), stringKey, value, fc.constant("NX"), fc.constant("PX"), ttlMs),
  fc.tuple(fc.constant("PEXPIRE"), stringKey, fc.oneof(ttlMs, fc.constantFrom("0", "-5"))),
  fc.tuple(fc.constant("EXISTS"), key, key),
  fc.tuple(fc.constant("HGET"), key, field),
  fc.tuple(fc.constant("HMGET"), key, field, field),
  fc.tuple(fc.constant("HSET"), key, field, value, field, value),
  fc.tuple(fc.constant("PUBLISH"), channel, value),
  fc.tuple(fc.constant("PUBSUB"), fc.constant("NUMSUB"), channel, channel),
  // Too few or too many arguments.
  fc.constantFrom(["GET"], ["GET", "a", "b"], ["HMGET", "a"], ["HSET", "a", "b"], ["PTTL"], ["INCR", "a", "b"]),
);

/** Shows what a script sees: a missing value is false, a status or an error a table. */
const COMMAND =
  "local reply = redis.pcall(unpack(ARGV)) return { type(reply), type(reply) == 'table' and (reply.err or reply.ok) or reply, type(reply) == 'table' and #reply or 0 }";

/** The operators and functions that the scripts use, on arbitrary operands. */
const EXPRESSIONS = [
  "tonumber(text) or 'nil'",
  "string.sub(text, a, b)",
  "string.sub(text, a)",
  "string.byte(text, a) or 'nil'",
  "string.find(text, other, 1, true) or 'nil'",
  "string.match(text, 'id:(%w+)') or string.match(text, '^%S*')",
  "string.find(text, 'id:0*[1-9a-f]') or 'nil'",
  "string.match(text, ':([^\\r\\n]+)') or 'nil'",
  "string.format('%015.0f|%-8.4s|%s|%.0f', math.max(a, 0), text, other, b * b)",
  "math.max(a, b) % 7 + math.min(a, 3)",
  "a % 8 .. '/' .. math.floor(a / 4) .. '/' .. #text",
  "tostring(a < b) .. tostring(text < other) .. tostring(text == other) .. tostring(not a)",
  "tostring(a == 3 and text or other) .. tostring(false or a)",
  "type(nil) .. type(a) .. type({}) .. type(text)",
  "text * 1",
  "text + a",
  "text .. nil",
  "nil .. text",
  "({ a, b, 3 })[2] .. #{ a, unpack({ b, text }) }",
  "select_second(a, b)",
];
const PREAMBLE =
  "local a, b, text, other = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]\nlocal function both(x, y) return x, y end\nlocal function select_second(x, y) local _, second = both(x, y) return second end\n";
const number = fc.integer({ min: -9, max: 30 }).map(String);
const words = fc.constantFrom(
  "",
  " ",
  "12",
  " 7 ",
  "1e3",
  "1.5",
  "-4",
  "id:abc9 x",
  "id:000",
  "a|b|c",
  "ab\r\ncd:ef\r\n",
  "|",
  "not a number",
);

const luaExpression = fc.oneof(
  {
    weight: 3,
    arbitrary: command.map((args): Step => ({ kind: "lua", source: COMMAND, args: args as readonly string[] })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constantFrom(...EXPRESSIONS), fc.tuple(number, number, words, words)).map(
      ([expression, args]): Step => ({
        kind: "lua",
        source: `${PREAMBLE}local done, value = pcall(function() return ${expression} end)\nreturn { tostring(done), done and value }`,
        args,
      }),
    ),
  },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 40, arbitrary: request },
  { weight: 30, arbitrary: luaExpression },
  { weight: 3, arbitrary: fc.constant({ kind: "greet" as const }) },
  { weight: 2, arbitrary: nodeScript("status", fc.constant([])) },
  { weight: 4, arbitrary: nodeScript("openAdmission", openAdmission) },
  { weight: 2, arbitrary: nodeScript("readFloor", fc.constantFrom(["epoch3", "1-g"], ["epoch4", "1-g"])) },
  { weight: 5, arbitrary: nodeScript("admit", admit) },
  { weight: 2, arbitrary: nodeScript("readmit", readmit) },
  { weight: 5, arbitrary: nodeScript("promise", promise) },
  { weight: 5, arbitrary: nodeScript("accept", accept) },
  { weight: 3, arbitrary: nodeScript("enter", enter) },
  { weight: 2, arbitrary: nodeScript("mark", mark) },
  {
    weight: 5,
    arbitrary: fc.integer({ min: 1, max: 4 }).map((grains): Step => ({ kind: "wait", ms: grains * GRAIN_MS })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom("kept" as const, "forgotten" as const).map((memory): Step => ({ kind: "restart", memory })),
  },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ kind: "flush" }, { kind: "flush scripts" }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("listen" as const), inbox: inboxes }) },
);

/** Begins with the admission of the node, so that most requests are granted or refused. */
export const sequences: fc.Arbitrary<readonly Step[]> = fc
  .tuple(openAdmission, admit, fc.array(step, { minLength: 5, maxLength: 40, size: "max" }))
  .map(([opened, [, , ...admitted], rest]) => [
    { kind: "greet" },
    { kind: "node script", name: "openAdmission", args: opened },
    { kind: "node script", name: "admit", args: [PRESENT_RUN, opened[0] ?? "", ...admitted] },
    ...rest,
  ]);

// One of the two servers that are compared, and the result of each step on it: the answer and all
// stored data. run_ids are replaced, and times are rounded to grains.

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
export class ComparedServer {
  readonly #server: Server;
  readonly #runIds: string[] = [];
  #scripts: TaughtScripts | undefined;
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
    const reply = await this.#server.eval(scripts[name], name === "mark" ? [keys.node, keys.marks] : [keys.node], words);
    if (name !== "openAdmission" || !Array.isArray(reply)) return reply;
    // Times since the admission was opened and since the server was started.
    return reply.map((word, i) => (i === 4 || i === 5 ? Math.round(Number(word) / GRAIN_MS) : word));
  }

  /** As on a new connection: asks for the status and loads the scripts for this life. */
  async #greet(): Promise<unknown> {
    const status = await this.#meet();
    const server = { runId: this.#runIds.at(-1) ?? "" };
    this.#scripts = scriptsFor(server, RETENTION_MS);
    const loads = Object.values(this.#scripts).map(({ source }) => this.#server.eval(source, [keys.node], []).catch(String));
    await Promise.all(loads);
    return status;
  }

  async #meet(): Promise<readonly unknown[]> {
    const status = (await this.#server.eval(scripts.status, [keys.node], [])) as readonly string[];
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

/** Remaining and elapsed times change while a real server works; clocks and versions differ. */
function comparable(value: unknown): unknown {
  if (typeof value === "string" && /^\d+\.\d+\.\d+$/.test(value)) return "a version";
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

// The simulated server, for the comparison.

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
