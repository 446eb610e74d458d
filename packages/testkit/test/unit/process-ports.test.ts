// Ports given out by processes on one machine never meet.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("../../.build/test/unit/process-ports.program.js", import.meta.url));

test("processes that take many ports at once get different ones", async () => {
  const takers = Array.from({ length: 3 }, () => spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] }));
  const lines = await Promise.all(takers.map((taker) => once(createInterface(taker.stdout), "line")));
  for (const taker of takers) taker.stdin.end();
  const ports = lines.flatMap(([line]) => JSON.parse(line as string) as number[]);
  expect(ports.length).toBe(360);
  expect(new Set(ports).size).toBe(360);
});
