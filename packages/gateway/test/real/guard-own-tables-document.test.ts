// docs/own-tables.md is run, block by block: what it says is refused is refused with that SQLSTATE,
// and everything else passes.
import { readFile } from "node:fs/promises";
import { guard } from "@palisade/guard";
import { connectTo, PostgresServer } from "@palisade/testkit";
import type pg from "pg";
import { grantRoles, migrate } from "../../src/store/migrate.js";
import { expect, test } from "../support/fixtures.js";

interface Block {
  readonly language: string;
  readonly text: string;
}

async function blocksOf(path: string): Promise<Block[]> {
  const document = await readFile(new URL(path, import.meta.url), "utf8");
  return [...document.matchAll(/```(sql|ts)\n([\s\S]*?)```/g)].map(([, language = "", text = ""]) => ({ language, text }));
}

/** One statement a line. Returns how many were refused, as the document says. */
async function runSql(client: pg.Client, text: string): Promise<number> {
  let refused = 0;
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const [, expected] = /-- refused: (\w+)/.exec(line) ?? [];
    const code = await client.query(line).then(
      () => undefined,
      (error: { readonly code: string }) => error.code,
    );
    expect({ line, code }).toEqual({ line, code: expected });
    refused += code === undefined ? 0 : 1;
  }
  return refused;
}

/** With the names that the block uses and does not define. */
async function runTypeScript(text: string, names: Readonly<Record<string, unknown>>): Promise<void> {
  const body = text.replace(/^import .*$/gm, "");
  const source = `export default async ({ ${Object.keys(names).join(", ")} }) => {\n${body}\n};`;
  const module = (await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(source)}`)) as {
    default(given: typeof names): Promise<void>;
  };
  await module.default(names);
}

test("every statement of the document on one's own tables does what the document says", async () => {
  await using server = await PostgresServer.start(); // Roles are the server's, not the database's.
  await migrate(server.url);
  await grantRoles(server.url);
  await using client = await connectTo(server.url);
  await client.query("create role my_app");
  const lease = { resource: "accounts/7", token: 34 };
  const [grants, ...blocks] = await blocksOf("../../../../docs/own-tables.md");
  await runSql(client, grants?.text ?? "");
  await client.query("set role my_app"); // No more rights than the document gives.
  let refused = 0;
  for (const { language, text } of blocks) {
    if (language === "sql") refused += await runSql(client, text);
    else await runTypeScript(text, { client, guard, lease });
  }
  expect(refused).toBe(7);
  expect(blocks.filter(({ language }) => language === "ts")).toHaveLength(1);
  expect((await client.query("select balance from accounts")).rows).toEqual([{ balance: 80 }]); // In TypeScript and in SQL once each.
});
