// The release command on a copy of this tree: versions, changelog, commit and tag; and what it
// refuses. What it uploads is proved by `npm run packages -- --install`, which publishes with it.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { released, sectionOf } from "../../release/changelog.mjs";
import { nextVersion } from "../../release/version.mjs";
import { pathOf } from "../programs.js";

const leftOut = /(^|\/)(node_modules|dist|bundle|\.build|\.cache|\.git)(\/|$)/;
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** The tree as it is now, committed, without what is installed. */
function copy(): { readonly folder: string; readonly git: (...args: string[]) => string } {
  const folder = mkdtempSync(join(tmpdir(), "palisade-release-"));
  folders.push(folder);
  const root = pathOf("..");
  cpSync(root, folder, { recursive: true, filter: (path) => !leftOut.test(relative(root, path)) });
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  git("init", "--quiet");
  for (const [name, value] of Object.entries({ "user.name": "a test", "user.email": "test@localhost" })) git("config", name, value);
  git("add", "--all");
  git("commit", "--quiet", "--message", "as it is");
  return { folder, git };
}

function release(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): { code: number | null; said: string } {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: _, ...inherited } = process.env;
  const options = { cwd: folder, encoding: "utf8", env: { ...inherited, ...env } } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "tools", "release", "main.mjs"), ...args], options);
  return { code: status, said: stdout + stderr };
}

describe("the next version", () => {
  test.each([
    ["patch", "1.2.4"],
    ["minor", "1.3.0"],
    ["major", "2.0.0"],
    ["1.10.0", "1.10.0"],
  ])("after 1.2.3, %s is %s", (wanted, expected) => expect(nextVersion("1.2.3", wanted)).toBe(expected));

  test.each(["1.2.3", "1.1.9", "0.9.9", "1.2", "v1.3.0", "1.3.0-beta.1"])("%s is refused", (wanted) =>
    expect(() => nextVersion("1.2.3", wanted)).toThrow(RangeError),
  );
});

test("the changelog gives what is unreleased to the version, and keeps the rest", () => {
  const text = "# Changes\n\n## Unreleased\n\n- new\n\n## 0.1.0 (2026-01-01)\n\n- old\n";
  const after = released(text, { version: "0.2.0", day: "2026-02-02" });
  expect(after).toBe("# Changes\n\n## Unreleased\n\n## 0.2.0 (2026-02-02)\n\n- new\n\n## 0.1.0 (2026-01-01)\n\n- old\n");
  expect([sectionOf(after, "0.2.0"), sectionOf(after, "0.1.0")]).toEqual(["- new", "- old"]);
  expect(() => released(after, { version: "0.3.0", day: "2026-03-03" })).toThrow("nothing to release");
});

describe("on a copy of this tree", () => {
  test("every package gets the version, in one commit with its tag, and the tree stays consistent", () => {
    const { folder, git } = copy();
    const read = (path: string): string => readFileSync(join(folder, path), "utf8");
    expect(release(folder, ["9.8.7"])).toEqual({ code: 0, said: expect.stringContaining("committed and tagged v9.8.7") });
    const manifests = git("ls-files", "package.json", "packages/*/package.json").trim().split("\n");
    expect(manifests.length).toBeGreaterThan(8);
    expect(manifests.map((path) => JSON.parse(read(path)).version)).toEqual(manifests.map(() => "9.8.7"));
    const examples = git("ls-files", "examples/*/package.json").trim().split("\n");
    for (const path of examples) expect([path, read(path).match(/"@palisade\/[\w-]+": "(?!\^9\.8\.7")/)]).toEqual([path, null]);
    expect(read("packages/gateway/src/version.generated.ts")).toContain('"9.8.7"');
    expect(read("CHANGELOG.md")).toMatch(/## Unreleased\n\n## 9\.8\.7 \(\d{4}-\d\d-\d\d\)\n/);
    expect([git("status", "--porcelain"), git("tag", "--points-at", "HEAD"), git("log", "-1", "--format=%s")]).toEqual([
      "",
      "v9.8.7\n",
      "release 9.8.7\n",
    ]);
    expect(release(folder, ["patch"])).toEqual({ code: 1, said: expect.stringContaining("there is nothing to release") });
    const proving = release(folder, ["--publish"], { ACTIONS_ID_TOKEN_REQUEST_URL: "http://127.0.0.1:9" });
    expect(proving).toEqual({ code: 1, said: expect.stringMatching(/^palisade: provenance needs .*"repository".*--no-provenance\n$/) });
  });

  test("nothing is published without its tag, from changed files, or without a word that is understood", () => {
    const { folder } = copy();
    expect(release(folder, ["--publish"])).toEqual({ code: 1, said: expect.stringContaining("does not have the tag v") });
    for (const args of [[], ["minor", "--publish"], ["--wat"], ["minor", "major"]])
      expect(release(folder, args)).toEqual({ code: 1, said: expect.stringContaining("Usage: npm run release") });
    cpSync(join(folder, "LICENSE"), join(folder, "LICENSE.copy"));
    expect(release(folder, ["patch"])).toEqual({ code: 1, said: expect.stringContaining("not committed") });
  });
});
