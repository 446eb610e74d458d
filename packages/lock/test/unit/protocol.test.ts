// What travels between a locker and a node: tokens as numbers, the names of keys, the scripts with the keys
// and arguments that they are asked with, and replies, of which those of another shape are garbage.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareTokens, formatToken, isToken, MAX_TOKEN, parseToken, TOKENS_PER_MS } from "../../src/protocol/token.js";
import {
  type AnyVerb,
  GarbageReply,
  type Keys,
  keysOf,
  LONGEST_PART_MS,
  type QuestionOf,
  TICKET_MS,
  type Verb,
  verbs,
} from "../../src/protocol/verbs.js";
import { type Batch, BatchEncoder } from "../../src/redis/calls.js";
import { causeOf, causeOfText, scriptsFor } from "../../src/redis/connection.js";
import { scripts } from "../../src/redis/lua.generated.js";
import { mark } from "../../src/redis/record.js";
import { resourcesPage } from "../../src/redis/reports.js";
import { admissionCalls, keys } from "./redis/admission-calls.js";

test("a token is an integer from 1 to 999999999999999", () => {
  for (const token of [1, 42, 1_790_000_000_000, MAX_TOKEN]) expect(isToken(token)).toBe(true);
  for (const not of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, MAX_TOKEN + 1, "7", 7n, null, undefined])
    expect(isToken(not)).toBe(false);
});

test("what is written is read again, and nothing else is", () => {
  for (const token of [1, 42, 1_790_000_000_000, MAX_TOKEN]) expect(parseToken(formatToken(token))).toBe(token);
  for (const text of ["", "0", "07", "+7", "-7", "7.0", "7e3", " 7", "7 ", "1000000000000000", "seven", "٧"])
    expect(parseToken(text)).toBeUndefined();
});

test("a number that is no token is not written", () => {
  expect(() => formatToken(1.79e15)).toThrow(RangeError);
  expect(formatToken(1_790_000_000_000)).toBe("1790000000000");
});

test("later tokens sort behind earlier ones", () => {
  expect([30, 4, 100].sort(compareTokens)).toEqual([4, 30, 100]);
});

// Names: the keys of a resource are its own.

const namespaces = fc.stringMatching(/^[A-Za-z0-9._:/@-]{1,20}$/);
// Words of our own key names, to provoke collisions.
const parts = fc.constantFrom(
  "a",
  "A",
  ":",
  "{",
  "}",
  "_",
  "-",
  "%3A",
  " ",
  "lock",
  "token",
  "inbox",
  "queue",
  "floor",
  "node",
  "1",
  "é",
  "e\u0301",
  "\0",
);
const texts = fc.array(parts, { minLength: 1, maxLength: 6 });
const resources = texts.map((all) => all.join(""));
/** Two that differ in one word: what is replaced, cut off or folded would make them one. */
const neighbours = fc.tuple(texts, fc.nat(5), parts).map(([parts, at, word]) => {
  const place = at % parts.length;
  return [parts.join(""), parts.with(place, word).join("")] as const;
});

function allOf(keys: Keys, resource: string): readonly string[] {
  return [keys.lock(resource), keys.token(resource)];
}

describe("keys", () => {
  test("different resources of different namespaces never share a key or channel", () => {
    fc.assert(
      fc.property(namespaces, namespaces, resources, resources, (firstSpace, secondSpace, first, second) => {
        fc.pre(firstSpace !== secondSpace || first !== second);
        const [ours, theirs] = [keysOf(firstSpace, "inbox"), keysOf(secondSpace, "inbox")];
        const names = new Set([...allOf(ours, first), ours.node, ours.inboxChannel]);
        expect(names.size).toBe(4);
        for (const name of allOf(theirs, second)) expect(names.has(name)).toBe(false);
        for (const name of allOf(theirs, first)) expect([theirs.node, theirs.inboxChannel]).not.toContain(name);
      }),
    );
  });

  test("resources of one namespace whose names differ in one character are different resources", () => {
    fc.assert(
      fc.property(namespaces, neighbours, (namespace, [first, second]) => {
        fc.pre(first !== second);
        const keys = keysOf(namespace, "inbox");
        const names = new Set([...allOf(keys, first), ...allOf(keys, second)]);
        expect(names.size).toBe(4);
      }),
      { numRuns: 500 },
    );
  });

  test("a namespace that has a brace, or no character, is refused", () => {
    for (const namespace of ["", "a{b", "a}b"]) expect(() => keysOf(namespace, "inbox")).toThrow(RangeError);
  });
});

// The Lua files, their embedded copies and the table of verbs say the same.

const folder = new URL("../../src/redis/lua/", import.meta.url);
const files = readdirSync(folder);

function textOf(name: string): string {
  return readFileSync(new URL(`${name}.lua`, folder), "utf8");
}

/** The contract of a file: the lines of comment it begins with. */
function headOf(name: string): string {
  return /^(?:--.*\n)+/.exec(textOf(name))?.[0] ?? "";
}

/** The arguments that the head names. */
function argumentsIn(name: string): readonly string[] {
  const line = (/^-- ARGV +([\s\S]*?)\n-- Reply/m.exec(headOf(name))?.[1] ?? "").replaceAll(/\n-- +/g, " ");
  const own = line.replace(/\(.*?\)/g, "").replace(/^(?:([\w ,]+), then )?per request: /, (_, shared) => (shared ? `${shared},` : ""));
  return own === "none" ? [] : own.split(",");
}

const scriptOf = (...given: Parameters<typeof scriptsFor>) => scriptsFor(...given).grant;

const asked = {
  resources: ["a", "b"],
  owner: "o",
  label: "l",
  ttlMs: 1,
  token: 2,
  tells: true,
  wait: { sinceMs: 1, waitedMs: 1, ticket: ":t", reserveMs: 40 },
  ticket: ":t",
};

describe("the Lua files", () => {
  test("are what is embedded", () => {
    const script = fileURLToPath(new URL("../../scripts/embed-lua.mjs", import.meta.url));
    execFileSync(process.execPath, [script, "--check"], { stdio: "pipe" });
  });

  test("are embedded without their comments", () => {
    for (const source of Object.values(scripts)) expect(source).not.toMatch(/^\s*--/m);
  });

  test("T2 name the life of the server, with which the cache of scripts dies", () => {
    const server = { runId: "0f3a" };
    const named = scriptOf(server, 7);
    expect(named.source).toMatch(/^local RETENTION, RUN = '7', '\+0f3a {35}'\n/);
    expect(named.sha).toBe(createHash("sha1").update(named.source).digest("hex"));
    expect(scriptOf({ runId: "0f3b" }, 7).sha).not.toBe(named.sha);
  });

  test("begin with their contract, and format every number that they store or concatenate", () => {
    for (const file of files) {
      const head = headOf(file.replace(".lua", ""));
      for (const word of ["What ", "KEYS ", "ARGV ", "Reply "]) expect(head, file).toMatch(new RegExp(`^-- ${word} +\\S`, "m"));
      // tostring and .. print 1.7949924714605e+12 for a token.
      expect(textOf(file.replace(".lua", "")), file).not.toMatch(/tostring\((?!answer\))/);
    }
  });

  test.each(Object.keys(verbs) as Verb[])("%s is asked with the keys and arguments that its script names and its loop expects", (name) => {
    const verb = verbs[name] as AnyVerb;
    const request = { verb, question: asked };
    const { keyCount, words } = new BatchEncoder(keys).encode([request, request] as Batch);
    const [named, args] = [words.slice(0, keyCount), words.slice(keyCount)];
    const loop = /eachRequest\([^,]*, (\d), (\d), (\d),/.exec(textOf(verb.script)) ?? [];
    const [first, shared, fields] = loop.slice(1).map(Number);
    const perResource = verb.needs === "nothing" ? 1 : 2;
    expect(argumentsIn(verb.script)).toHaveLength(Number(shared) + Number(fields));
    expect(args).toHaveLength(Number(shared) + 2 * Number(fields));
    expect(named.slice(0, Number(first) - 1)).toEqual(verb.needs === "nothing" ? [] : [keys.node]);
    expect(named.length - Number(first) + 1).toBe(2 * perResource * asked.resources.length);
  });

  test("the scripts that are no verbs are asked with the arguments that their heads name", () => {
    const calls = { ...admissionCalls, "list-resources": resourcesPage(keys, "0"), mark: mark(new Map([["store", 7]])) };
    for (const [name, { args }] of Object.entries(calls)) expect(args).toHaveLength(argumentsIn(name).length);
  });

  test("know the same times of the queue, the same highest token, and as many tokens a millisecond", () => {
    expect(textOf("open-admission")).toContain(`later * ${TOKENS_PER_MS})\n`);
    expect(textOf("queue")).toContain(`local LONGEST_PART_MS = ${LONGEST_PART_MS}\n`);
    expect(textOf("claim")).toContain(`local TICKET_MS = '${TICKET_MS}'\n`);
    expect(textOf("start")).toContain(`local HIGHEST = ${MAX_TOKEN}\n`);
  });
});

// Replies of another shape than our scripts give are garbage, never a ballot.

const heard = { node: "n1", epoch: "e" };
const lease = { resources: ["a", "b"], owner: "o", label: "l", ttlMs: 1, token: 2, tells: true };
const anything = fc.anything({
  maxDepth: 2,
  values: [fc.integer(), fc.string(), fc.constant(null), fc.double(), fc.constantFrom("", "1", "0")],
});

const questions: { readonly [V in Verb]: QuestionOf<V> } = {
  grant: lease,
  claim: { ...lease, wait: { sinceMs: 1, waitedMs: 1, ticket: ":t", reserveMs: 40 } },
  seal: lease,
  extend: lease,
  heal: lease,
  release: lease,
  leave: { ...lease, ticket: ":t" },
  inspect: lease,
  raise: lease,
};
const words: { readonly [V in Verb]: readonly string[] } = {
  grant: ["granted", "held"],
  claim: ["granted", "held"],
  seal: ["sealed", "lost"],
  extend: ["extended", "missing", "taken"],
  heal: ["extended", "missing", "taken"],
  release: ["released", "absent"],
  leave: ["released", "absent"],
  inspect: ["seen"],
  raise: ["raised", "kept"],
};

describe("replies", () => {
  test.each(Object.keys(verbs) as Verb[])("%s reads a ballot of its own or says that the reply is garbage", (name) => {
    const verb = verbs[name] as AnyVerb;
    fc.assert(
      fc.property(anything, (reply) => {
        try {
          expect(words[name]).toContain(verb.read(heard, reply, questions[name]).kind);
        } catch (error) {
          expect(error).toBeInstanceOf(GarbageReply);
        }
      }),
    );
  });

  test("T2 a grant is never read from a number that is no token", () => {
    for (const reply of [0, -1, 1.5, 1e15, Number.NaN, Number.POSITIVE_INFINITY, "7", [7], true]) {
      expect(() => verbs.grant.read(heard, reply, lease)).toThrow(GarbageReply);
    }
  });

  test("a holder is shown by its label, which may contain anything, and a key without an end by the longest time a timer can wait", () => {
    const held = verbs.grant.read(heard, [2, "owner|a|b", -1], lease);
    expect(held).toEqual({
      kind: "held",
      node: "n1",
      resource: "b",
      holder: "a|b",
      remainingMs: 2 ** 31 - 1,
    });
    expect(verbs.extend.read(heard, ["owner|", -2], lease)).toMatchObject({
      kind: "taken",
      holder: "",
      remainingMs: 0,
    });
  });

  test("the scripts of the admission read what they expect or say that the reply is garbage", () => {
    fc.assert(
      fc.property(anything, (reply) => {
        for (const call of Object.values(admissionCalls)) {
          try {
            const read = call.read(reply);
            expect(["undefined", "number", "object", "boolean"]).toContain(typeof read);
          } catch (error) {
            expect(error).toBeInstanceOf(GarbageReply);
          }
        }
      }),
    );
  });
});

// The words of an unreachable ballot, for errors as ioredis and Redis word them.
describe("causes", () => {
  test.each([
    [Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" }), "ECONNREFUSED"],
    [Object.assign(new AggregateError([new Error("a"), new Error("b")]), { code: "ETIMEDOUT" }), "ETIMEDOUT"],
    [new Error("Connection is closed."), "connection lost"],
    [new Error("Stream isn't writeable and enableOfflineQueue options is false"), "connection lost"],
    [new Error("WRONGPASS invalid username-password pair or user is disabled."), "WRONGPASS: user name or password refused"],
    [new Error("something new"), "something new"],
    ["not even an error", "not even an error"],
  ])("%s is %s", (error, cause) => {
    expect(causeOf(error)).toBe(cause);
  });

  test.each([
    ["READONLY You can't write against a read only replica. script: 0f, on @user_script:9.", /^READONLY: a replica/],
    ["-READONLY You can't write against a read only replica.", /^READONLY: a replica/],
    [
      "ERR Error running script (call to f_0): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'.",
      /^OOM: out of memory/,
    ],
    ["NOPERM this user has no permissions to run the 'eval' command", /^NOPERM: .* \(\+eval\)$/],
    ["NOPERM User least has no permissions to run the 'config|get' command", /^NOPERM: .* \(\+config\|get\)$/],
    ["ERR The user executing the script can't run this command or subcommand script: 0f, on @user_script:4.", /^NOPERM: /],
    ["LOADING Redis is loading the dataset in memory", /^LOADING: still reading/],
    ['Protocol error, got "H" as reply type byte. Please report this.', /^garbage reply/],
  ])("%s means %s", (text, cause) => {
    expect(causeOfText(text)).toMatch(cause);
  });

  test("no cause is longer than a line", () => {
    expect(causeOf(new Error("x".repeat(500)))).toHaveLength(120);
  });
});
