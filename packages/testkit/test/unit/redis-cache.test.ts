// What is built once per machine is never seen half done, also when several build it at once.
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { builtOnce } from "../../src/resolve/built-once.js";

let home = "";

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "palisade-test-"));
});

afterEach(async () => {
  await rm(home, { recursive: true });
});

test("it is built by the first call, and later calls take it as it is", async () => {
  const build = (text: string) => (folder: string) => writeFile(join(folder, "part"), text);
  const first = await builtOnce("thing", build("first"), home);
  expect(await builtOnce("thing", build("second"), home)).toBe(first);
  expect(await readFile(join(first, "part"), "utf8")).toBe("first");
});

test("of several builds at once one wins, all get the same, and nothing else is left", async () => {
  let builders = 0;
  let all = (): void => {};
  const allAreBuilding = new Promise<void>((resolve) => {
    all = resolve;
  });
  const build = async (folder: string): Promise<void> => {
    await writeFile(join(folder, "a"), "whole");
    builders += 1;
    if (builders === 5) all();
    await allAreBuilding;
    await writeFile(join(folder, "b"), "whole");
  };
  const folders = await Promise.all(Array.from({ length: 5 }, () => builtOnce("thing", build, home)));
  expect(new Set(folders).size).toBe(1);
  expect((await readdir(folders[0] as string)).sort()).toEqual(["a", "b"]);
  expect(await readdir(home)).toEqual(["thing"]);
});

test("a build that fails leaves nothing, and the next one may succeed", async () => {
  const failing = async (folder: string): Promise<void> => {
    await writeFile(join(folder, "half"), "");
    throw new Error("no network");
  };
  await expect(builtOnce("thing", failing, home)).rejects.toThrow("no network");
  expect(await readdir(home)).toEqual([]);
  expect(await readdir(await builtOnce("thing", async () => {}, home))).toEqual([]);
});

test("a place that cannot be written is named in the error", async () => {
  const file = join(home, "file");
  await writeFile(file, "");
  await expect(builtOnce("thing", async () => {}, join(file, "below"))).rejects.toThrow(/nowhere to keep thing: ENOTDIR.*below/);
});
