// The programs of "Embedding" in the README, run as they stand there: in somebody's own server, and
// without any.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Child, returnPort, startNode, takePort } from "@palisade/testkit";
import { test as base, describe, eventually, expect } from "../support/fixtures.js";

const at = (path: string): URL => new URL(`../../${path}`, import.meta.url);
const [, section = ""] = readFileSync(at("README.md"), "utf8").split("\n## Embedding\n");
const [, inServer = "", withoutHttp = ""] = [...section.matchAll(/```ts\n(.*?)```/gs)].map(([, program = ""]) => program);

const test = base.extend("start", ({ task: _test, database, redis }, { onCleanup }) => {
  const folder = at(`.build/embedding-${process.pid}/`); // Below this package, whose dependencies it imports.
  mkdirSync(folder, { recursive: true });
  const children: Child[] = [];
  onCleanup(async () => {
    await Promise.all(children.map((child) => child.kill()));
    rmSync(folder, { recursive: true, force: true });
  });
  return (program: string) => {
    const file = fileURLToPath(new URL("program.mjs", folder));
    const here = program.replace("postgres://localhost/app", database.url).replace(/nodes: \[.*\]/, `nodes: ${JSON.stringify(redis.urls)}`);
    writeFileSync(file, here);
    const child = startNode(file, [], { name: "an embedding" });
    children.push(child);
    return child;
  };
});

const status = async (...asked: Parameters<typeof fetch>): Promise<number> => (await fetch(...asked)).status;

describe("a gateway", () => {
  test("in somebody's server answers its own routes, and leaves the others to that", async ({ start }) => {
    const port = await takePort();
    const url = `http://127.0.0.1:${port}`;
    const server = start(inServer.replace("3000", String(port)));
    await eventually(() => status(`${url}/ops/live`).catch(() => 0)).toBe(200);
    const put = { method: "PUT", headers: { "content-type": "application/json", "fencing-token": "5" }, body: "{}" };
    expect(await status(`${url}/v1/resources/embedded/1`, put)).toBe(201);
    expect(await status(`${url}/v1/resources/embedded/1`, { ...put, headers: { ...put.headers, "fencing-token": "4" } })).toBe(412);
    expect(await (await fetch(`${url}/hello`)).text()).toBe("hello");
    expect(await (await fetch(`${url}/v1/nothing`)).text()).toContain("Cannot GET /v1/nothing");
    expect(await (await fetch(`${url}/v1/transactions`)).json()).toMatchObject({ code: "method_not_allowed" });
    expect(await (await fetch(`${url}/ops/metrics`)).text()).toContain("palisade_queued_writes");
    expect(await status(`${url}/live`)).toBe(404);
    server.signal("SIGTERM");
    expect(await server.waitForExit(), server.howItEnded()).toMatchObject({ code: 0 });
    returnPort(port);
  });

  test("that listens itself answers every route, as before", async ({ gateway }) => {
    expect(await (await fetch(`${gateway.url}/hello`)).json()).toMatchObject({ code: "route_not_found" });
    expect(await status(`${gateway.adminUrl}/hello`)).toBe(404);
  });
});

test("G1 G4 the fenced store without HTTP writes under a lease", async ({ start }) => {
  const program = start(withoutHttp);
  expect(await program.waitForExit(), program.howItEnded()).toMatchObject({ code: 0 });
  expect(program.lastLines()).toEqual(["accepted"]);
});
