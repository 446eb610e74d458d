// What was prepared once is taken again, unless files have gone missing from it.
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { prepared } from "../../src/resolve/postgres-cache.js";

let home = "";
let fillings = 0;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "palisade-test-"));
  vi.stubEnv("PALISADE_CACHE_DIR", home);
  fillings = 0;
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(home, { recursive: true });
});

function ask(): Promise<string> {
  const fill = async (content: string): Promise<void> => {
    fillings += 1;
    await Promise.all(["one", "two"].map((name) => writeFile(join(content, name), name)));
  };
  return prepared({ name: "thing", account: undefined, fill });
}

test("the second call gets what was filled for the first", async () => {
  const first = await ask();
  expect(await ask()).toBe(first);
  expect(fillings).toBe(1);
});

test("an entry that has lost a file is filled again, once, even if several find it like that", async () => {
  await rm(join(await ask(), "two"));
  const contents = await Promise.all([ask(), ask(), ask()]);
  for (const content of contents) expect(await readFile(join(content, "two"), "utf8")).toBe("two");
  expect(await readdir(home)).toEqual(["thing"]);
});

test("a folder whose path initdb cannot pass to its shell is refused in one sentence that says what helps", async () => {
  vi.stubEnv("PALISADE_CACHE_DIR", join(home, "with $HOME in it"));
  await expect(ask()).rejects.toThrow(
    /^Postgres has no folder to run from: tried .*with \$HOME in it \(initdb takes no path with.*; set PALISADE_CACHE_DIR to a folder that .*\.$/,
  );
});
