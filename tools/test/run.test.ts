// The task runner leaves nothing running and nothing behind: real processes, real signals.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Child, processState, startNode } from "../../packages/testkit/src/index.js";
import { inTurn } from "../run.mjs";

const soon = { timeout: 10_000, interval: 10 };
const read = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const sleeper = 'console.log("child", process.pid); setInterval(() => {}, 1000);';

/** A program that runs another one as the task runner does. */
function guarding(source: string): Child {
  const program = `
    import { interrupt, run } from ${JSON.stringify(new URL("../run.mjs", import.meta.url).href)};
    process.on("SIGINT", () => interrupt("SIGINT"));
    const { code } = await run([process.execPath, "-e", ${JSON.stringify(source)}], { output: "shown" });
    console.log("ended with", code);`;
  const child = startNode("--input-type=module", ["-e", program]);
  onTestFinished(async () => void (await child.kill()));
  return child;
}

/** The process that says that it is the child. */
async function childOf(parent: Child): Promise<number> {
  const pid = Number((await parent.says(/child (\d+)/))[1]);
  onTestFinished(() => {
    if (runs(pid)) process.kill(pid, "SIGKILL");
  });
  return pid;
}

/** Running, as opposed to gone or waiting to be buried. */
const runs = (pid: number): boolean => !["Z", "X", undefined].includes(processState(pid)?.state);

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "palisade-test-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

test("a child dies when its parent is killed without a word", async () => {
  const parent = guarding(sleeper);
  const child = await childOf(parent);
  parent.signal("SIGKILL");
  await vi.waitFor(() => expect(runs(child)).toBe(false), soon);
});

test("a child that asks for its last second gets it", async () => {
  const parent = guarding(`process.on("SIGINT", () => { console.log("cleaned up"); process.exit(3); }); ${sleeper}`);
  await childOf(parent);
  parent.signal("SIGINT");
  await parent.says(/cleaned up/);
  await parent.says(/ended with 3/);
});

test("what a child leaves behind in its group ends with it", async () => {
  const parent = guarding(`const left = require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(sleeper)}]);
    left.stdout.once("data", (text) => process.stdout.write(text, () => process.exit(3)));`);
  const grandchild = await childOf(parent);
  await parent.says(/ended with 3/);
  await vi.waitFor(() => expect(runs(grandchild)).toBe(false), soon);
});

test("one run at a time prepares the clone, and a turn whose owner is gone is taken away", async () => {
  const lock = join(folder(), "preparing");
  writeFileSync(lock, "4194304"); // No pid is that high.
  let inside = 0;
  const visit = () =>
    inTurn(async () => {
      expect(++inside).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 20));
      inside--;
    }, lock);
  await Promise.all([visit(), visit(), visit()]);
});

test("a task without a name is refused in one sentence, and leaves no folder", () => {
  const temporary = folder();
  const runner = [fileURLToPath(new URL("../run.mjs", import.meta.url)), "nothing"];
  const { status, stderr } = spawnSync(process.execPath, runner, { env: { ...process.env, TMPDIR: temporary }, encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^palisade: there is no task "nothing"; there are demo, /);
  expect(readdirSync(temporary)).toEqual([]);
});

test("pnpm is the one that packageManager names", () => {
  const [, version, hex = ""] = /^pnpm@([^+]+)\+sha512\.(\w+)$/.exec(read("../../package.json").packageManager) ?? [];
  expect(read("../pnpm/package-lock.json").packages["node_modules/pnpm"]).toMatchObject({
    version,
    integrity: `sha512-${Buffer.from(hex, "hex").toString("base64")}`,
  });
});
