// The clock library is compiled with what there is; without a compiler the error says what helps.
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { compile, SHIM_FILE } from "../../src/clock/clock-shim.js";

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "palisade test "));
  await mkdir(join(folder, "bin"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function program(name: string, body: string): Promise<void> {
  const path = join(folder, "bin", name);
  await writeFile(path, `#!/bin/sh\nPATH=/usr/bin:/bin\n${body}\n`);
  await chmod(path, 0o755);
}

const here = (): NodeJS.ProcessEnv => ({ PATH: join(folder, "bin"), PALISADE_CACHE_DIR: join(folder, "cache") });

/** Its last argument but one names the output. */
const writes = (text: string): string => `while [ "$#" -gt 2 ]; do shift; done; echo '${text}' > "$1"`;

test("a compiler on PATH is taken before any package", async () => {
  await program("gcc", writes("by gcc"));
  await program("apt-get", "exit 1");
  const shim = (await compile(here())) as { folder: string };
  expect(await readFile(join(shim.folder, SHIM_FILE), "utf8")).toBe("by gcc\n");
});

test("without a compiler, tcc is fetched from the distribution's packages", async () => {
  await program("apt-get", 'case "$*" in *download*) touch tcc.deb ;; esac');
  await program("tcc-of-the-package", writes("by tcc"));
  await program("dpkg", '[ "$1" = -x ] || exit 0; mkdir -p "$3/usr/bin"; cp "$(dirname "$0")/tcc-of-the-package" "$3/usr/bin/tcc"');
  const shim = (await compile(here())) as { folder: string };
  expect(await readFile(join(shim.folder, SHIM_FILE), "utf8")).toBe("by tcc\n");
});

test("with neither, one sentence says what was tried and what helps", async () => {
  expect(await compile(here())).toEqual({
    missing:
      "no C compiler works (cc is not on PATH; gcc is not on PATH; clang is not on PATH; tcc is not on PATH; apt-get is not on PATH); " +
      "installing gcc, clang or tcc helps",
  });
});
