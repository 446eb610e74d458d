// The README's own example, run as it stands there on real servers.
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createGateway } from "@palisade/gateway";
import { expect, test } from "@palisade/testkit/vitest";

const run = promisify(execFile);
const at = (path: string): URL => new URL(`../../${path}`, import.meta.url);

test("README.md has at most 110 lines", async () => {
  expect((await readFile(at("../../README.md"), "utf8")).trimEnd().split("\n").length).toBeLessThanOrEqual(110);
});

test("G1 the example of the README stores what it says and sees a stale write refused, twice in a row", async ({ redis, database }) => {
  const gateway = createGateway({
    databaseUrl: database.url,
    apiKeys: "none",
    port: 0,
    adminPort: 0,
    redisUrls: redis.urls,
    logLevel: "silent",
  });
  const copy = at(`.build/readme-${process.pid}.mjs`);
  try {
    await gateway.listen();
    const [, example = ""] = /```js\n(.*?)```/s.exec(await readFile(at("../../README.md"), "utf8")) ?? [];
    // Only the addresses are another machine's.
    const here = example
      .replace(/\[7001.*`\)/, JSON.stringify(redis.urls))
      .replace("http://127.0.0.1:8080", gateway.url)
      .replace(/"accounts\/7"/g, `"accounts/${redis.namespace}"`);
    await writeFile(copy, here);
    const first = await run(process.execPath, [fileURLToPath(copy)]);
    const second = await run(process.execPath, [fileURLToPath(copy)]);
    expect([first.stdout, second.stdout]).toEqual([
      expect.stringMatching(/^token \d+: stored a balance of 10\ntoken \d+: fencing_token_stale\n$/),
      expect.stringMatching(/^token \d+: stored a balance of 20\ntoken \d+: fencing_token_stale\n$/),
    ]);
  } finally {
    await rm(copy, { force: true });
    await gateway.close();
  }
});
