// Runs the model checker over spec/ and compares its findings with the tables and traces there.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inRoot } from "../run.mjs";

interface Found {
  readonly name: string;
  readonly verdict: string;
  readonly states: number;
  readonly trace: readonly string[];
}

interface Model {
  readonly name: string;
  readonly expected: string;
  readonly states: number;
  readonly onDemand: boolean;
  readonly invariants: readonly string[];
  /** The rules that are left out. */
  readonly without: readonly string[];
}

const spec = (path: string): string => inRoot("spec", path);
const text = (path: string): string => readFileSync(spec(path), "utf8");
const strings = (set: string): readonly string[] => [...set.matchAll(/"([^"]+)"/g)].map(([, one = ""]) => one);

// By a path that the compiler does not follow: spec/ is not part of this project.
const { allModels } = (await import(new URL("../../spec/checker/models.mjs", import.meta.url).href)) as {
  allModels: () => readonly Model[];
};
const models = allModels();

let findings: ReadonlyMap<string, Found>;
const checking = new AbortController();

beforeAll(async () => {
  // The exit code tells the same as the comparison below, and less of it.
  const run = promisify(execFile)(process.execPath, [spec("check.mjs"), "--json"], { maxBuffer: 1e8, signal: checking.signal });
  const { stdout } = await run.catch((error: { readonly stdout: string }) => error);
  findings = new Map((JSON.parse(stdout) as readonly Found[]).map((found) => [found.name, found]));
}, 600_000);
// It is not left running when its time is up.
afterAll(() => checking.abort());

/** Expected and found, for the models of one specification that run every day. */
function compared(module: string) {
  const usual = models.filter(({ name, onDemand }) => name.startsWith(`${module}/`) && !onDemand);
  return {
    wanted: usual.map(({ name, expected, states }) => ({ name, verdict: expected, states })),
    found: usual.map(({ name }) => {
      const { verdict, states } = findings.get(name) ?? {};
      return { name, verdict, states };
    }),
  };
}

function expectAsWritten(module: string): void {
  const { wanted, found } = compared(module);
  expect(wanted.some(({ verdict }) => verdict === "holds")).toBe(true);
  expect(wanted.some(({ verdict }) => verdict !== "holds")).toBe(true);
  expect(wanted.every(({ states }) => states > 0)).toBe(true);
  expect(found).toEqual(wanted);
}

test("T1 T2 the token protocol holds in every reachable state, through lost memories and admissions, and breaks without any one of its rules", () => {
  expectAsWritten("tokens");
});

test("T1 T2 a node's memory offers nothing twice in any reachable state, and does without any one of its rules", () => {
  expectAsWritten("memory");
});

test("T1 T2 a fleet that begins under several lockers forgets no lease in any reachable state, and does without any one of its rules", () => {
  expectAsWritten("founding");
});

test("L2 no two leases are valid at once in any reachable state while clocks run alike, and are without any one of the rules", () => {
  expectAsWritten("exclusion");
});

test("W1 a free lock comes to the first that waits in every reachable state, and does not without any one of the rules", () => {
  expectAsWritten("queue");
});

test("G1 G3 the store forgets no fence and no answered write in any reachable state, and does without any one of its rules", () => {
  expectAsWritten("store");
});

test("G1 G3 a fold is its puts one after the other in every reachable state, and is not without any one of its rules", () => {
  expectAsWritten("folds");
});

describe("the models", () => {
  test.each(["tokens", "memory", "founding", "exclusion", "queue", "store", "folds"])(
    "of %s leave out every rule once, and name the invariant that breaks",
    (module) => {
      const rules = strings(/^Rules == \{$([\s\S]*?)^\}$/m.exec(text(`${module}.tla`))?.[1] ?? "");
      const broken = models.filter(({ name, expected }) => name.startsWith(`${module}/`) && expected !== "holds");
      expect(rules.length).toBeGreaterThan(0);
      expect(new Set(broken.flatMap(({ without }) => without))).toEqual(new Set(rules));
      for (const { expected, invariants } of broken) expect(expected).toBe(`${invariants[0]} is violated`);
    },
  );
});
