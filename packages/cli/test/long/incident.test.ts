// The README's transcript of an incident is what happens: run again, it differs in numbers only.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "@palisade/testkit/vitest";

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Times, tokens, ports and the widths that come of them; the fingerprint of an owner. */
function withoutNumbers(transcript: string): string {
  return transcript
    .replace(/(?<=\d {2})[\w-]{8}$/gm, "owner")
    .replace(/[+-]?\d+(\.\d+)*/g, "0")
    .replace(/ +/g, " ");
}

test("G1 a node is killed, a holder paused, its lock taken, and its late write refused, as the README shows it", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [at("scripts/incident.mjs")]);
  const [, shown = ""] = /An incident[^\n]*\n\n(```\n[\s\S]*?\n```\n)/.exec(readFileSync(at("README.md"), "utf8")) ?? [];
  expect(withoutNumbers(stdout)).toBe(withoutNumbers(shown));
  expect(shown).toMatch(/wakes up and writes with token (\d+): fencing_token_stale, the fence is (?!\1)\d+/);
});
