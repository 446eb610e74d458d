// A Lua script in a simulated server: compiled once per process, executed as Redis executes it.
import { createHash } from "node:crypto";
import { type Chunk, parse, translate } from "../lua/translate.js";
import { first, LuaError, Table, truthy, type Value } from "../lua/values.js";
import { type Execution, execute, type Reply, Status } from "./commands.js";
import { RedisError, Unsupported } from "./memory.js";

export interface Script {
  readonly sha: string;
  /** The text after the first line, in which the client puts RETENTION and RUN. */
  readonly text: string;
  run(execution: Execution, keys: readonly string[], args: readonly string[]): Reply;
}

const NOT_ASCII = /[^\n\r -~]/;
const chunks = new Map<string, Chunk>();

/** `edit` changes the text, for controls. */
export function compile(source: string, edit: (text: string) => string): Script {
  const { names, values, text } = divided(source);
  const edited = edit(text);
  const id = `${names.join()}\n${edited}`;
  let chunk = chunks.get(id);
  if (chunk === undefined) {
    chunk = translate(edited, names);
    chunks.set(id, chunk);
  }
  const run = chunk;
  return {
    sha: createHash("sha1").update(source).digest("hex"),
    text,
    run: (execution, keys, args) => answered(() => run(redisFor(execution), listOf(keys), listOf(args), ...values)),
  };
}

/** Lua counts bytes and JavaScript characters; both agree only on ASCII. */
function listOf(words: readonly string[]): Table {
  for (const word of words) if (NOT_ASCII.test(word)) throw new Unsupported(`a word beyond ASCII: ${word}`);
  return new Table([...words]);
}

/** Splits off a first line that only names values, which differ per life of a server. */
function divided(source: string): { readonly names: readonly string[]; readonly values: readonly Value[]; readonly text: string } {
  const [, line = "", text = ""] = /^(local [\w, ]+ = [^\n]*\n)([\s\S]*)$/.exec(source) ?? [];
  const [statement] = line === "" ? [] : parse(line);
  if (statement?.type !== "LocalStatement") return { names: [], values: [], text: source };
  const isPlain = statement.init.every(({ type }) => type === "StringLiteral" || type === "BooleanLiteral");
  if (!isPlain || statement.init.length !== statement.variables.length) return { names: [], values: [], text: source };
  return {
    names: statement.variables.map(({ name }) => name),
    values: statement.init.map((literal) => (literal as { readonly value: string | boolean }).value),
    text,
  };
}

function redisFor(execution: Execution): Table {
  const call = (command: Value, ...args: Value[]): Value => fromReply(execute(execution, String(command), args.map(argument)));
  return new Table([], {
    call(command, ...args) {
      try {
        return call(command, ...args);
      } catch (error) {
        if (error instanceof RedisError) throw new LuaError(new Table([], { err: error.message }));
        throw error;
      }
    },
    pcall(command, ...args) {
      try {
        return call(command, ...args);
      } catch (error) {
        if (error instanceof RedisError) return new Table([], { err: error.message });
        throw error;
      }
    },
  });
}

function argument(value: Value): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  throw new Unsupported(`the argument ${String(value)} of a command`);
}

function fromReply(reply: Reply | Status): Value {
  if (reply === null) return false;
  if (typeof reply === "number" || typeof reply === "string") return reply;
  if (reply instanceof Status) return new Table([], { ok: reply.text });
  return new Table(reply.map(fromReply));
}

function answered(run: () => ReturnType<Chunk>): Reply {
  try {
    return toReply(first(run()));
  } catch (error) {
    if (!(error instanceof LuaError)) throw error;
    const { value } = error;
    throw new RedisError(value instanceof Table ? String(value.get("err")) : `ERR ${String(value)}`);
  }
}

/** As Redis converts replies: numbers are truncated, nil and false are a null reply. */
function toReply(value: Value): Reply {
  if (typeof value === "number") return Math.trunc(value);
  if (typeof value === "string") return value;
  if (!truthy(value)) return null;
  if (!(value instanceof Table)) return 1;
  const [err, ok] = [value.get("err"), value.get("ok")];
  if (typeof err === "string") throw new RedisError(err);
  return typeof ok === "string" ? ok : value.list.map(toReply);
}
