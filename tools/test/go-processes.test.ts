// The task runner leaves nothing running: real processes, real signals.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { chainToPackageManager } from "../go/ancestors.mjs";
import { endsWithTest, moduleOf, Program, runs } from "./programs.js";

const soon = { timeout: 10_000, interval: 10 };
const sleeper = 'console.log("child", process.pid); setInterval(() => {}, 1000);';

/** Runs `source` as the child that tools/go/child.mjs guards. */
const guarding = (source: string): string => `
  import { interrupt, Interrupted, run } from ${moduleOf("go/child.mjs")};
  process.on("SIGINT", () => interrupt("SIGINT"));
  await run([process.execPath, "-e", ${JSON.stringify(source)}], { output: "shown" }).then(
    ({ code }) => console.log("ended with", code),
    (error) => console.log(error instanceof Interrupted ? "interrupted" : error),
  );`;

test("a child dies when its parent is killed without a word", async () => {
  const parent = new Program(guarding(sleeper));
  const child = endsWithTest(Number((await parent.says(/child (\d+)/))[1]));
  parent.process.kill("SIGKILL");
  await vi.waitFor(() => expect(runs(child)).toBe(false), soon);
});

test("a child that asks for its last second gets it, and its parent hears of the end", async () => {
  const parent = new Program(guarding(`process.on("SIGINT", () => { console.log("cleaned up"); process.exit(0); }); ${sleeper}`));
  endsWithTest(Number((await parent.says(/child (\d+)/))[1]));
  parent.process.kill("SIGINT");
  await parent.says(/cleaned up\ninterrupted/);
});

test("a child that ignores the first signal is killed by the second", async () => {
  const parent = new Program(guarding(`process.on("SIGINT", () => console.log("no")); ${sleeper}`));
  const child = endsWithTest(Number((await parent.says(/child (\d+)/))[1]));
  parent.process.kill("SIGINT");
  await parent.says(/no/);
  parent.process.kill("SIGINT");
  await parent.says(/interrupted/);
  expect(runs(child)).toBe(false);
});

test("what a child leaves behind in its group ends with it", async () => {
  const leavesOneBehind = `const left = require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(sleeper)}]);
    left.stdout.once("data", (text) => process.stdout.write(text, () => process.exit(3)));`;
  const parent = new Program(guarding(leavesOneBehind));
  const grandchild = endsWithTest(Number((await parent.says(/child (\d+)/))[1]));
  await parent.says(/ended with 3/);
  await vi.waitFor(() => expect(runs(grandchild)).toBe(false), soon);
});

test("the exit code of a child that a signal ended is 128 and the number of the signal", async () => {
  await new Program(guarding('process.kill(process.pid, "SIGKILL")')).says(/ended with 137/);
});

describe("what a task puts into the temporary folder", () => {
  const writer = `require("node:fs").writeFileSync(require("node:path").join(require("node:os").tmpdir(), "left"), ""); ${sleeper}`;
  const task = `
    import { interrupt, run } from ${moduleOf("go/child.mjs")};
    import { inScratchFolder } from ${moduleOf("go/scratch.mjs")};
    process.on("SIGINT", () => interrupt("SIGINT"));
    const child = [process.execPath, "-e", ${JSON.stringify(writer)}];
    await inScratchFolder((env) => run(child, { output: "shown", env })).catch((error) => console.log(String(error)));`;

  async function started(folder: string): Promise<{ readonly program: Program; readonly child: number }> {
    const program = new Program(task, { ...process.env, TMPDIR: folder });
    return { program, child: endsWithTest(Number((await program.says(/child (\d+)/))[1])) };
  }

  test("is gone when it is interrupted", async () => {
    const folder = temporaryFolder();
    const { program } = await started(folder);
    expect(readdirSync(folder)).toHaveLength(1);
    program.process.kill("SIGINT");
    await program.ends();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("is removed by the next one when it was killed without a word", async () => {
    const folder = temporaryFolder();
    const first = await started(folder);
    first.program.process.kill("SIGKILL");
    await vi.waitFor(() => expect(runs(first.child)).toBe(false), soon);
    const [left] = readdirSync(folder);
    const { program } = await started(folder);
    expect(readdirSync(folder)).not.toContain(left);
    program.process.kill("SIGINT");
    await program.ends();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("has a sentence when there is no such folder", async () => {
    const program = new Program(task, { ...process.env, TMPDIR: join(temporaryFolder(), "none") });
    await program.ends();
    expect(program.output).toMatch(/none cannot be written \(ENOENT\)\. Set TMPDIR to a folder that can\.\n$/);
  });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "palisade-go-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test.each(["npm", "sh"])("the death of the %s above the task runner is noticed", async (victim) => {
  const watcher = `import { watchAncestors } from ${moduleOf("go/ancestors.mjs")};
    watchAncestors(() => { console.log("noticed"); process.exit(); });
    console.log("watcher", process.pid);
    setInterval(() => {}, 1000);`;
  // "node npm" → "sh" → the watcher, as a package manager starts a script.
  const shell = `console.log("sh", process.pid); require("node:child_process").spawn(process.execPath, ["--input-type=module", "-e", process.env.WATCHER], { stdio: "inherit" });`;
  const npm = `process.title = "npm test"; console.log("npm", process.pid);
    const { spawn } = await import("node:child_process");
    spawn(process.execPath, ["-e", process.env.SHELL_PROGRAM], { stdio: "inherit" });
    setInterval(() => {}, 1000);`;
  const program = new Program(npm, { ...process.env, npm_lifecycle_event: "test", WATCHER: watcher, SHELL_PROGRAM: shell });
  endsWithTest(Number((await program.says(/watcher (\d+)/))[1]));
  process.kill(Number((await program.says(new RegExp(`${victim} (\\d+)`)))[1]), "SIGKILL");
  await vi.waitFor(() => expect(program.output).toContain("noticed"), soon);
});

test("a task runner that finds itself orphaned at its start ends", async () => {
  const watcher = `import { watchAncestors } from ${moduleOf("go/ancestors.mjs")};
    while (process.ppid === Number(process.env.PARENT)) await new Promise((resolve) => setTimeout(resolve, 5));
    watchAncestors(() => console.log("noticed"));`;
  const program = new Program(
    `const { spawn } = await import("node:child_process");
     const env = { ...process.env, PARENT: process.pid };
     spawn(process.execPath, ["--input-type=module", "-e", process.env.WATCHER], { stdio: "inherit", detached: true, env }).once("spawn", process.exit);`,
    { ...process.env, npm_lifecycle_event: "test", WATCHER: watcher },
  );
  await vi.waitFor(() => expect(program.output).toContain("noticed"), soon);
});

describe("the processes above a task runner", () => {
  /** pid → parent, session, command line. */
  const table = (rows: Readonly<Record<number, readonly [number, string, string]>>) => ({
    parentOf: (pid: number) => rows[pid]?.[0] ?? 0,
    sessionOf: (pid: number) => rows[pid]?.[1],
    argumentsOf: (pid: number) => (rows[pid]?.[2] ?? "").split("|"),
  });
  const runner = "node|tools/go.mjs|test";

  test.each([
    ["npm by its title", "npm test"],
    ["npm by its script", "/usr/bin/node|--no-warnings|/usr/lib/node_modules/npm/bin/npm-cli.js|test"],
    ["pnpm by its script", "node|/usr/local/bin/pnpm|test"],
    ["pnpm by its file", "node|/cache/pnpm/bin/pnpm.cjs|test"],
    ["bun", "/opt/bun/bin/bun|run|test"],
  ])("end at %s", (_, manager) => {
    const rows = { 9: [8, "s", runner], 8: [7, "s", "sh|-c|node tools/go.mjs test"], 7: [6, "s", manager], 6: [1, "s", "bash"] } as const;
    expect(chainToPackageManager(9, table(rows))).toEqual([9, 8, 7]);
  });

  test.each(["bash|-c|npm test; true", "tini|--|npm|test", "vim|npm"])("do not end at %s, which only mentions npm", (mentions) => {
    const rows = { 9: [8, "s", runner], 8: [7, "s", mentions], 7: [6, "s", "npm test"], 6: [1, "s", "bash"] } as const;
    expect(chainToPackageManager(9, table(rows))).toEqual([9, 8, 7]);
  });

  test.each(["bash|-c|npm test", "npm test"])("are none for an orphan that process 1, %s, has adopted", (first) => {
    expect(chainToPackageManager(9, table({ 9: [1, "s", runner], 1: [0, "of 1", first] }))).toEqual([9]);
  });

  test("are process 1 alone for the child of npm in a container that runs nothing else", () => {
    expect(chainToPackageManager(9, table({ 9: [1, "s", runner], 1: [0, "s", "npm test"] }))).toEqual([9, 1]);
  });
});
