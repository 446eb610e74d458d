// An editor can describe what is imported from the package: every export, and every member of the
// interfaces that a user fills in or calls.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

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
