// The README's own programs, compiled strictly and run as they stand there on real servers.
import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createGateway, migrate } from "@palisade/gateway";
import { test as base, expect } from "@palisade/testkit/vitest";

const run = promisify(execFile);
const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const readme = await readFile(at("../../README.md"), "utf8");
const test = base.extend("databaseTemplate", { scope: "file" }, async () => ({ name: "gateway", migrate }));

test("README.md has at most 100 lines", () => {
  expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(100);
});

test("G1 G5 the programs of the README store what they say and see a stale write refused, twice in a row", async ({ redis, database }) => {
  const settings = {
    databaseUrl: database.url,
    apiKeys: "none",
    port: 0,
    adminPort: 0,
    redisUrls: redis.urls,
    logLevel: "silent",
  } as const;
  const gateway = createGateway(settings);
  const folder = at(`.build/readme-${process.pid}`); // Below this package, whose dependencies they import.
  try {
    await Promise.all([gateway.listen(), mkdir(folder, { recursive: true })]);
    const [table = "", documents = ""] = [...readme.matchAll(/```ts\n(.*?)```/gs)].map(([, program]) => program);
    // Only the addresses are another machine's, and the names are this test's.
    const here = (program: string): string =>
      program
        .replace(/\[7001.*`\)/, JSON.stringify(redis.urls))
        .replace("http://127.0.0.1:8080", gateway.url)
        .replace("postgres://postgres@127.0.0.1:7432/postgres", database.url)
        .replaceAll(/(accounts|carts)\//g, `$1-${redis.namespace}/`);
    await writeFile(join(folder, "table.mts"), here(table));
    await writeFile(join(folder, "documents.mts"), here(documents));
    const tsc = join(createRequire(import.meta.url).resolve("typescript/package.json"), "../bin/tsc");
    const options =
      "--strict --noUncheckedIndexedAccess --module nodenext --target es2022 --lib es2022,esnext.disposable --types node --skipLibCheck";
    await run(process.execPath, [tsc, ...options.split(" "), "--ignoreConfig", "table.mts", "documents.mts"], { cwd: folder });
    const both = async () =>
      (await Promise.all(["table.mjs", "documents.mjs"].map((file) => run(process.execPath, [file], { cwd: folder })))).map(
        ({ stdout }) => stdout,
      );
    const said = (balance: number, items: number) =>
      [`a balance of ${balance}`, `a cart of ${items}`].map((first) => `${first}\nfencing_token_stale\n`);
    expect(await both()).toEqual(said(10, 1));
    expect(await both()).toEqual(said(20, 2));
  } finally {
    await rm(folder, { recursive: true, force: true });
    await gateway.close();
  }
});
