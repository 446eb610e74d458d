// The Lua files, their embedded copies and scripts.ts say the same.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { MAX_TOKEN, TOKENS_PER_MS } from "../../../src/protocol/token.js";
import { type AnyVerb, LONGEST_PART_MS, TICKET_MS, type Verb, verbs } from "../../../src/protocol/verbs.js";
import { type Batch, BatchEncoder } from "../../../src/redis/calls.js";
import { scriptsFor } from "../../../src/redis/connection.js";
import { scripts } from "../../../src/redis/lua.generated.js";
import { mark } from "../../../src/redis/record.js";
import { resourcesPage } from "../../../src/redis/reports.js";
import { admissionCalls, keys } from "./admission-calls.js";

const folder = new URL("../../../src/redis/lua/", import.meta.url);
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

const lease = {
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
    const script = fileURLToPath(new URL("../../../scripts/embed-lua.mjs", import.meta.url));
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
    const request = { verb, question: lease };
    const { keyCount, words } = new BatchEncoder(keys).encode([request, request] as Batch);
    const [named, args] = [words.slice(0, keyCount), words.slice(keyCount)];
    const loop = /eachRequest\([^,]*, (\d), (\d), (\d),/.exec(textOf(verb.script)) ?? [];
    const [first, shared, fields] = loop.slice(1).map(Number);
    const perResource = verb.needs === "nothing" ? 1 : 2;
    expect(argumentsIn(verb.script)).toHaveLength(Number(shared) + Number(fields));
    expect(args).toHaveLength(Number(shared) + 2 * Number(fields));
    expect(named.slice(0, Number(first) - 1)).toEqual(verb.needs === "nothing" ? [] : [keys.node]);
    expect(named.length - Number(first) + 1).toBe(2 * perResource * lease.resources.length);
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
