// The README's own example: the same text as the program beside this test, which is compiled with
// everything else and is run here on real servers.
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createGateway } from "@palisade/gateway";
import { expect, test } from "@palisade/testkit/vitest";

const run = promisify(execFile);
const at = (path: string): URL => new URL(`../../${path}`, import.meta.url);

async function example(): Promise<string> {
  const source = await readFile(at("test/support/readme-example.ts"), "utf8");
  return source.slice(source.indexOf("\n") + 1);
}

test("the example of the README is the program that is run here", async () => {
  const readme = await readFile(at("../../README.md"), "utf8");
  expect(/```ts\n(.*?)```/s.exec(readme)?.[1]).toBe(await example());
});

test("the example of the README stores what it says, twice in a row", async ({ redis, database }) => {
  const gateway = createGateway({ databaseUrl: database.url, port: 0, adminPort: 0, redisUrls: redis.urls, logLevel: "silent" });
  const copy = at(`.build/test/readme-${process.pid}.mjs`);
  try {
    await gateway.listen();
    const compiled = await readFile(at(".build/test/support/readme-example.js"), "utf8");
    // Only the addresses are another machine's.
    const here = compiled.replace(/\[\s*"redis:[^\]]*\]/, JSON.stringify(redis.urls)).replace("http://127.0.0.1:8080", String(gateway.url));
    await writeFile(copy, here);
    const first = await run(process.execPath, [fileURLToPath(copy)]);
    const second = await run(process.execPath, [fileURLToPath(copy)]);
    expect([first.stdout, second.stdout]).toEqual([
      expect.stringMatching(/^10 stored as revision 1 under token \d+\n$/),
      expect.stringMatching(/^20 stored as revision 2 under token \d+\n$/),
    ]);
  } finally {
    await rm(copy, { force: true });
    await gateway.close();
  }
});
