// The fixtures that every other test stands on: what they hand out is fresh, apart from every other
// test's, and taken back.
import { connect } from "node:net";
import { queryAt } from "@palisade/testkit";
import { test as base, describe, expect } from "@palisade/testkit/vitest";
import { Redis } from "ioredis";

const test = base.extend("databaseTemplate", { scope: "file" }, async () => ({
  name: "fixtures",
  migrate: (url: string) => queryAt(url, "create table notes (text text)"),
}));

describe("database", () => {
  let seenBefore = "";

  test("it begins as a copy of the file's template", async ({ database }) => {
    expect(await queryAt(database.url, "select text from notes")).toEqual([]);
    await queryAt(database.url, "insert into notes values ('from the first test')");
    seenBefore = database.name;
  });

  test("it is one for all tests of a file", async ({ database }) => {
    expect(database.name).toBe(seenBefore);
    expect(await queryAt(database.url, "select text from notes")).toEqual([{ text: "from the first test" }]);
  });
});

describe("redis", () => {
  const namespaces: string[] = [];

  test("it is five nodes that answer", async ({ redis }) => {
    namespaces.push(redis.namespace);
    const clients = redis.urls.map((url) => new Redis(url));
    expect(await Promise.all(clients.map((client) => client.ping()))).toEqual(Array(5).fill("PONG"));
    for (const client of clients) client.disconnect();
  });

  test("every test has a namespace of its own", ({ redis }) => {
    expect(redis.namespace).toMatch(/^t[0-9a-f]{12}$/);
    expect(namespaces).not.toContain(redis.namespace);
  });
});

function isServed(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

describe("fleet", () => {
  const urls: string[] = [];

  test("it is private, and may be broken", async ({ fleet, redis }) => {
    const [own, another] = await Promise.all([fleet({ nodes: 2 }), fleet({ nodes: 1 })]);
    const nodes = [...own.nodes, ...another.nodes];
    expect(redis.urls).not.toEqual(expect.arrayContaining([nodes[0]?.url]));
    urls.push(...nodes.map((node) => node.directUrl));
    await own.nodes[0]?.kill();
    expect(await Promise.all(urls.map(isServed))).toEqual([false, true, true]);
  });

  test("it is stopped when its test is over", async () => {
    expect(await Promise.all(urls.map(isServed))).toEqual([false, false, false]);
  });
});
