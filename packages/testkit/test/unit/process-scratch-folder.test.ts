// What a killed process left behind is swept by the next one, also where another process has its
// pid by now.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { processState } from "../../src/process/process-state.js";
import { scratchFolder } from "../../src/process/scratch-folder.js";

test("a folder is swept unless the very process that made it still runs", async () => {
  const root = await mkdtemp(join(tmpdir(), "palisade-test-"));
  onTestFinished(() => rm(root, { recursive: true }));
  const made = (owner: string): string => join(root, `palisade-${hostname()}-${owner}-label-x`);
  const birth = processState(process.ppid)?.birth ?? "";
  const kept = [made(`${process.ppid}.${birth}`), join(root, `palisade-${hostname()}-other`), join(root, "other")];
  const swept = [made("4194305."), ...(birth === "" ? [] : [made(`${process.ppid}.1${birth}`)])];
  for (const folder of [...kept, ...swept]) await mkdir(folder);
  const own = scratchFolder("label", root);
  expect([...kept, own].filter((folder) => !existsSync(folder))).toEqual([]);
  expect(swept.filter((folder) => existsSync(folder))).toEqual([]);
});
