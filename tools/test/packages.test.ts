// What packed packages say of themselves where there is no tree around them.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { addressed } from "../packages/addressed.mjs";

const repository = "https://git.example/owner/name";

test("a packed README leads to the repository's page at its version, and its manifest to the folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "palisade-packed-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const inside = join(folder, "package");
  mkdirSync(inside);
  writeFileSync(join(inside, "package.json"), JSON.stringify({ name: "@palisade/x", version: "1.2.3" }));
  writeFileSync(join(inside, "README.md"), "[a](../client) [b](../../docs/errors.md#codes) [c](#below) [d](https://a.example/b)");
  const file = join(folder, "x.tgz");
  execFileSync("tar", ["-czf", file, "-C", folder, "package"]);
  await addressed(file, "packages/x", repository);
  const said = (name: string): string => execFileSync("tar", ["-xzOf", file, `package/${name}`], { encoding: "utf8" });
  expect(JSON.parse(said("package.json")).repository).toEqual({ type: "git", url: `git+${repository}.git`, directory: "packages/x" });
  const page = `${repository}/blob/v1.2.3`;
  expect(said("README.md")).toBe(`[a](${page}/packages/client) [b](${page}/docs/errors.md#codes) [c](#below) [d](https://a.example/b)`);
});
