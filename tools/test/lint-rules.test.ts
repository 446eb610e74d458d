// Feeds Biome, as biome.json sets it, a sample that breaks each of the rules that this project adds
// to the recommended ones.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";

const pathOf = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));
const lock = "packages/lock/src";

/** Each file breaks the rule that it is listed under, and no other file breaks it. */
const samples: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "suspicious/noImportCycles": {
    [`${lock}/one.ts`]: 'import type { Two } from "./two.js";\nexport type One = Two | 1;\n',
    [`${lock}/two.ts`]: 'import type { One } from "./one.js";\nexport type Two = One | 2;\n',
  },
  "suspicious/noExplicitAny": { [`${lock}/any.ts`]: "export const value: any = 1;\n" },
  "style/useFilenamingConvention": { [`${lock}/RedisNode.ts`]: "//\n", [`${lock}/redis_node.ts`]: "//\n" },
  "style/noNonNullAssertion": { [`${lock}/certain.ts`]: "export const first = (list: string[]) => list[0]!;\n" },
  "complexity/useMaxParams": {
    [`${lock}/parameters.ts`]: "export const f = (a: 1, b: 1, c: 1, d: 1) => [a, b, c, d];\n",
    "packages/lock/test/unit/parameters.test.ts": "export const f = (a: 1, b: 1, c: 1, d: 1, e: 1) => [a, b, c, d, e];\n",
  },
  "complexity/noForEach": { [`${lock}/each.ts`]: "[1].forEach((one) => console.log(one));\n" },
};
const keeps = {
  [`${lock}/redis-node.ts`]: "export const f = (a: 1, b: 1, c: 1) => [a, b, c];\n",
};

interface Report {
  readonly diagnostics: readonly { readonly category: string; readonly location: { readonly path: string } }[];
}

let found: Report["diagnostics"];

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "palisade-lint-"));
  try {
    for (const file of ["biome.json", ".gitignore"]) cpSync(pathOf(`../${file}`), join(folder, file));
    for (const [path, text] of Object.entries(Object.assign({}, keeps, ...Object.values(samples)))) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), String(text));
    }
    const biome = [pathOf("../node_modules/@biomejs/biome/bin/biome"), "lint", "--reporter=json", "--max-diagnostics=none"];
    const run = promisify(execFile)(process.execPath, biome, { cwd: folder });
    const { stdout } = await run.catch((error: { readonly stdout: string }) => error);
    found = (JSON.parse(stdout) as Report).diagnostics;
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each(Object.entries(samples))("lint/%s refuses its sample, and nothing else", (rule, files) => {
  const refused = found.filter(({ category }) => category === `lint/${rule}`).map(({ location: { path } }) => path);
  expect([...new Set(refused)].sort()).toEqual(Object.keys(files).sort());
});
