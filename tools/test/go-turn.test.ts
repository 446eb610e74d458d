// One run at a time prepares the clone, whatever happened to the run before it.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { inTurn } from "../go/turn.mjs";
import { moduleOf, Program } from "./programs.js";

function turnFile(): string {
  const directory = mkdtempSync(join(tmpdir(), "palisade-turn-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, "turn");
}

const owner = (changes: object): string =>
  JSON.stringify({ pid: process.pid, birth: "1", host: hostname(), writtenAt: Date.now(), ...changes });
const deadPid = (): number => spawnSync(process.execPath, ["-e", ""]).pid;

/** Work that sees how many are inside at the same time. */
function lonely(): () => Promise<number> {
  let inside = 0;
  return async () => {
    inside += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return inside--;
  };
}

test("two runs never prepare at the same time", async () => {
  const turn = turnFile();
  const work = lonely();
  expect(await Promise.all(Array.from({ length: 6 }, () => inTurn(work, turn)))).toEqual(Array(6).fill(1));
  expect(readdirSync(join(turn, ".."))).toEqual([]);
});

test("the turn of a run that failed passes on", async () => {
  const turn = turnFile();
  await expect(inTurn(() => Promise.reject(new Error("no")), turn)).rejects.toThrow("no");
  expect(await inTurn(async () => "mine", turn)).toBe("mine");
});

test("the turn of a run that was killed is taken over by exactly one of those who wait", async () => {
  const turn = turnFile();
  const killed = new Program(
    `import { inTurn } from ${moduleOf("go/turn.mjs")};
     await inTurn(async () => { console.log("inside"); await new Promise(() => setInterval(() => {}, 1000)); }, ${JSON.stringify(turn)});`,
  );
  await killed.says(/inside/);
  const work = lonely();
  const waiting = Promise.all(Array.from({ length: 6 }, () => inTurn(work, turn)));
  killed.process.kill("SIGKILL");
  expect(await waiting).toEqual(Array(6).fill(1));
});

/** A run that changes a file only when the file that its step is named after is there. */
function hesitant(turn: string, steps: string): Program {
  return new Program(
    `import fs from "node:fs";
     import { syncBuiltinESMExports } from "node:module";
     let step = 0;
     for (const name of ["linkSync", "renameSync", "rmSync"]) {
       const change = fs[name];
       fs[name] = (...args) => {
         fs.writeSync(1, "step " + ++step + ": " + name + "\\n");
         while (!fs.existsSync(${JSON.stringify(steps)} + step)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
         return change(...args);
       };
     }
     syncBuiltinESMExports();
     const { inTurn } = await import(${moduleOf("go/turn.mjs")});
     await inTurn(async () => {}, ${JSON.stringify(turn)});`,
  );
}

test("a run that has found the owner dead and hesitates does not take the turn from who has it by then", async () => {
  const turn = turnFile();
  const steps = `${turnFile()}-`;
  writeFileSync(turn, owner({ pid: deadPid() }));
  const slow = hesitant(turn, steps);
  // It looks twice; what it does then, it does because the owner is dead.
  for (const step of [1, 2]) {
    await slow.says(new RegExp(`step ${step}:`));
    writeFileSync(`${steps}${step}`, "");
  }
  await slow.says(/step 3:/);
  await new Promise<void>((inside) => {
    const work = (): Promise<void> =>
      new Promise((leave) => {
        onTestFinished(() => leave());
        inside();
      });
    void inTurn(work, turn);
  });
  for (let step = 3; step < 9; step++) {
    await slow.says(new RegExp(`step ${step}:`));
    expect(existsSync(turn), slow.output).toBe(true);
    writeFileSync(`${steps}${step}`, "");
  }
});

test.each([
  ["whose process is gone", () => owner({ pid: deadPid() })],
  ["whose pid belongs to a later process", () => owner({})],
  ["in another container, long ago", () => owner({ host: "elsewhere", writtenAt: Date.now() - 11 * 60_000 })],
])("an owner %s is dead", async (_, text) => {
  const turn = turnFile();
  writeFileSync(turn, text());
  expect(await inTurn(async () => "mine", turn)).toBe("mine");
});

test("an owner in another container is waited for", async () => {
  const turn = turnFile();
  writeFileSync(turn, owner({ host: "elsewhere" }));
  const order: string[] = [];
  const mine = inTurn(async () => order.push("mine"), turn);
  const theirs = setTimeout(() => {
    order.push("theirs ends");
    rmSync(turn);
  }, 120);
  onTestFinished(() => clearTimeout(theirs));
  await mine;
  expect(order).toEqual(["theirs ends", "mine"]);
});
