// The pages that are made of other sources are current, and complete.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Problem, problemCodes } from "../../packages/gateway/src/http/problems.js";
import { settings } from "../../packages/gateway/src/settings/settings.js";
import { errorsPage, settingsPage } from "../site/reference-pages.mjs";

const REMEDY = "npm run site -- --pages writes the page again";
const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

const errors = errorsPage({
  problems: problemCodes.map((code) => new Problem(code, "")),
  wire: read("spec/wire.md"),
  lock: read("packages/lock/README.md"),
  client: read("packages/client/src/results.ts"),
  ownTables: read("docs/own-tables.md"),
});

test("the page of settings names every setting with its default and meaning", () => {
  expect(read("docs/settings.md"), REMEDY).toBe(settingsPage(settings));
});

test("the page of errors is the one that its sources make", () => {
  expect(read("docs/errors.md"), REMEDY).toBe(errors);
});

test("the page of errors names every code of the lock, the client and the guard", () => {
  const codes = /type LockErrorCode =([^;]+);/.exec(read("packages/lock/src/protocol/ballot.ts"))?.[1] ?? "";
  const reasons = /type LeaseLostReason =([^;]+);/.exec(read("packages/lock/src/protocol/ballot.ts"))?.[1] ?? "";
  const local = /type LocalCode =([^;]+);/.exec(read("packages/client/src/results.ts"))?.[1] ?? "";
  const named = [...`${codes}${reasons}${local}`.matchAll(/"(\w+)"/g)].map(([, code = ""]) => code);
  expect(named.length).toBeGreaterThan(15);
  for (const code of [...named, "PLS01", "PLS03"]) expect(errors).toContain(`\`${code}\``);
});

test("the wire format says of every problem of the gateway that it exists", () => {
  for (const code of problemCodes) expect(read("spec/wire.md")).toContain(`\`${code}\``);
});
