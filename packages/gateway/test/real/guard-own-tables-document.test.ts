// docs/own-tables.md is run, statement by statement: what it says is refused is refused with that
// SQLSTATE, and everything else passes.
import { readFile } from "node:fs/promises";
import { expect, test } from "../support/store.js";

interface Step {
  readonly text: string;
  readonly refusedWith: string | undefined;
}

async function stepsOf(path: string): Promise<Step[]> {
  const document = await readFile(new URL(path, import.meta.url), "utf8");
  const blocks = [...document.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  const lines = blocks.flatMap((block) => block.split("\n").filter((line) => line !== ""));
  return lines.map((line) => ({ text: line.replace(/--.*$/, ""), refusedWith: /-- refused: (\w+)/.exec(line)?.[1] }));
}

test("every statement of the document on one's own tables does what the document says", async ({ connect }) => {
  const client = await connect();
  const steps = await stepsOf("../../../../docs/own-tables.md");
  expect(steps.filter(({ refusedWith }) => refusedWith !== undefined)).toHaveLength(7);
  for (const { text, refusedWith } of steps) {
    const code = await client.query(text).then(
      () => undefined,
      (error: { readonly code: string }) => error.code,
    );
    expect({ text, code }).toEqual({ text, code: refusedWith });
  }
});
