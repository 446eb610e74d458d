// What is written about the code: the tables of the README, which say every option with its unit, default
// and reason, and every code and reason of an error; descriptions of what is exported; named tests.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { LeaseLostReason, LockErrorCode } from "../../src/index.js";
import { acquireNames, optionNames, readLeaseRequest, readPolicy, retryOptionNames } from "../../src/options/policy.js";
import { channelNames } from "../../src/protocol/events.js";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const policy = readPolicy({ nodes: [1, 2, 3, 4, 5].map((i) => `redis://n${i}`) });

/** The rows of the table whose first column has this heading. */
function table(heading: string): readonly (readonly string[])[] {
  const lines = readme.split("\n");
  const start = lines.findIndex((line) => line.startsWith(`| ${heading} |`));
  if (start < 0) throw new Error(`the README has no table that begins with ${heading}`);
  const length = lines.slice(start).findIndex((line) => !line.startsWith("|"));
  return lines.slice(start + 2, start + length).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** The names in the first column. */
const named = (rows: readonly (readonly string[])[]): string[] =>
  rows.flatMap(([first = ""]) => [...first.matchAll(/`(\w+(\.\w+)?)`/g)].map(([, name]) => name ?? ""));

/** The number with which a cell begins, or undefined. */
const numberIn = (cell: string | undefined): number | undefined => {
  const [digits] = /^[\d .]*\d/.exec(cell ?? "") ?? [];
  return digits === undefined ? undefined : Number(digits.replaceAll(" ", ""));
};

/** Every value of a union, checked by the compiler to be all of them. */
const every = <Union extends string>(all: Record<Union, true>): string[] => Object.keys(all);

const ofCreateLocker = [...table("option of `createLocker`"), ...table("further option of `createLocker`")];

describe("the README", () => {
  test.each(["option", "option of `createLocker`", "further option of `createLocker`"])(
    "gives a unit, a default and a reason for each %s",
    (heading) => {
      for (const row of table(heading)) {
        expect(row).toHaveLength(4);
        for (const cell of row) expect(cell, row[0]).not.toBe("");
      }
    },
  );

  test("names every option of createLocker, and no other", () => {
    const expected = optionNames.flatMap((name) => (name === "retry" ? retryOptionNames.map((own) => `retry.${own}`) : [name]));
    expect(named(ofCreateLocker)).toEqual(expect.arrayContaining(expected));
    expect(named(ofCreateLocker)).toHaveLength(expected.length);
  });

  test("states the defaults of createLocker", () => {
    const stated = new Map(ofCreateLocker.map((row) => [named([row])[0] ?? "", row[2]]));
    for (const [option, value] of Object.entries({
      ...policy,
      ...Object.fromEntries(Object.entries(policy.retry).map(([name, value]) => [`retry.${name}`, value])),
    })) {
      if (typeof value !== "number" || ["size", "quorum"].includes(option)) continue;
      if (value === Number.POSITIVE_INFINITY) expect(stated.get(option), option).toBe("no limit");
      else expect(numberIn(stated.get(option)), option).toBe(value);
    }
    expect(stated.get("namespace")).toBe(`\`${policy.namespace}\``);
    expect(readPolicy({ nodes: ["redis://a"], ttlMs: 400 }).nodeTimeoutMs).toBe(100);
    expect(stated.get("nodeTimeoutMs")).toContain("a quarter of `ttlMs`");
  });

  test("names every option of acquire, and states its default", () => {
    const rows = table("option");
    expect(named(rows).toSorted()).toEqual([...acquireNames].toSorted());
    const request = readLeaseRequest("acquire", policy, { resources: "r", options: {} });
    const stated = new Map(rows.map((row) => [named([row])[0] ?? "", row[2]]));
    expect(request).toMatchObject({ renew: false, maxHoldMs: Number.POSITIVE_INFINITY, signal: undefined });
    expect([stated.get("renew"), stated.get("maxHoldMs"), stated.get("signal")]).toEqual([
      "`false`; with `using` always `true`",
      "no limit",
      "none",
    ]);
  });

  test("names every code and every reason of an error", () => {
    const codes = every<LockErrorCode>({
      LOCK_HELD: true,
      LOCK_NO_QUORUM: true,
      LOCK_TOO_SLOW: true,
      LOCK_ABORTED: true,
      LEASE_LOST: true,
      FLEET_MISMATCH: true,
    });
    expect(named(table("error code"))).toEqual(expect.arrayContaining(codes));
    const reasons = every<LeaseLostReason>({
      expired: true,
      taken: true,
      unreachable: true,
      quarantined: true,
      released: true,
      closed: true,
    });
    expect(named(table("`LockError.reason` of `LEASE_LOST`")).toSorted()).toEqual(reasons.toSorted());
  });

  test("mentions every kind of event", () => {
    const words = {
      attempt: "attempt",
      round: "round",
      renewal: "renewal",
      danger: "danger",
      loss: "loss",
      end: "end of a lease",
      wait: "wait",
      forceRelease: "forced release",
      campaign: "campaign",
      node: "nodes",
    };
    expect(Object.keys(words).toSorted()).toEqual(Object.keys(channelNames).toSorted());
    for (const word of Object.values(words)) expect(readme).toContain(word);
  });
});

// An editor can describe what is imported from the package: every export, and every member of the
// interfaces that a user fills in or calls.

const folder = new URL("../../src/", import.meta.url);
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
const sources = new Map(files.map((file) => [file, readFileSync(new URL(file, folder), "utf8").split("\n")]));

/** The names that index.ts exports. */
const exported = [...(sources.get("index.ts") ?? []).join("\n").matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = ""]) =>
  names.split(",").flatMap((name) => name.replace("type ", "").trim() || []),
);
exported.push("createLocker");

/** Where something is declared: the lines from there on, and the line before. */
function declarationOf(name: string): { readonly before: string; readonly lines: readonly string[] } {
  for (const lines of sources.values()) {
    const at = lines.findIndex((line) => new RegExp(`^export (abstract )?(interface|type|class|const|function) ${name}\\b`).test(line));
    if (at >= 0) return { before: lines[at - 1]?.trim() ?? "", lines: lines.slice(at) };
  }
  throw new Error(`nothing declares ${name}`);
}

test("every export is explained", () => {
  expect(exported.length).toBeGreaterThan(40);
  expect(exported.filter((name) => !declarationOf(name).before.endsWith("*/"))).toEqual([]);
});

test.each(["LockerOptions", "LockerTuning", "RetryOptions", "AcquireOptions", "TryAcquireOptions", "Locker", "Lease", "Fleet"])(
  "every member of %s is explained",
  (name) => {
    const { lines } = declarationOf(name);
    const members = lines.slice(1, lines.indexOf("}")).map((line, index) => ({ line, before: lines[index]?.trim() ?? "" }));
    const named = members.flatMap(({ line, before }) => {
      const [, member] = /^ {2}(?:readonly )?(\w+)[?(<:]/.exec(line) ?? [];
      return member === undefined ? [] : [{ member, isExplained: before.endsWith("*/") }];
    });
    expect(named.length).toBeGreaterThan(0);
    // An overload shares the words of its first.
    const unexplained = named.filter(
      ({ member, isExplained }) => !isExplained && !named.some((other) => other.member === member && other.isExplained),
    );
    expect(unexplained.map(({ member }) => member)).toEqual([]);
  },
);

// docs/divergence.md names a test for each failure that other libraries have shown.

const testFolder = new URL("../", import.meta.url);
const tests = readdirSync(testFolder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".test.ts"));
// A title may be broken over two lines of code only at its ends.
const titles = tests.flatMap((file) =>
  [...readFileSync(new URL(file, testFolder), "utf8").matchAll(/test(?:\.\w+\(.*\))?\(\s*"((?:[^"\\]|\\.)*)"/g)].map(
    ([, title]) => title ?? "",
  ),
);
const document = readFileSync(new URL("../../../../docs/divergence.md", import.meta.url), "utf8");
const section = document.slice(document.indexOf("## Failures that other lock libraries have shown"));
const rows = [...section.matchAll(/^\| (.+) \| .+ \| (.+) \|$/gm)].slice(2).map(([, failure = "", title = ""]) => ({ failure, title }));

test("each of the thirteen failures has one test that is called so", () => {
  expect(rows).toHaveLength(13);
  for (const { failure, title } of rows)
    expect(
      titles.filter((each) => each.includes(title)),
      failure,
    ).toHaveLength(1);
});
