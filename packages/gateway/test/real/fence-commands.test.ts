// The program's commands about the user's own tables, run as a process.
import { expect, runProgram, test } from "../support/fixtures.js";
import { fencedTable } from "../support/sql.js";

test("what is fenced and the ways around it can be asked by the program", async ({ connect, database }) => {
  const client = await connect();
  const name = await fencedTable(client, "id integer primary key", "id");
  const run = (...args: string[]) => runProgram(args, { DATABASE_URL: database.url });
  const [listed, well] = await Promise.all([run("fences"), run("doctor")]);
  expect(listed).toMatchObject({ code: 0, out: expect.stringContaining(`${name}: ${name}/{id}\n`) });
  expect(well).toMatchObject({ code: 0, out: expect.stringContaining("No way around the fences is open.") });
  await client.query(`alter table ${name} disable trigger palisade_guard_row`);
  const [disabled, sick] = await Promise.all([run("fences"), run("doctor")]);
  expect(disabled).toMatchObject({ out: expect.stringContaining(`${name}: ${name}/{id}; its trigger is disabled`) });
  expect(sick).toMatchObject({
    code: 1,
    out: expect.stringContaining(`open        ${name}: the trigger palisade_guard_row is disabled`),
  });
  const [taken, nameless] = await Promise.all([run("unfence", name), run("unfence")]);
  expect(taken).toMatchObject({ code: 0, out: expect.stringContaining(`${name} is not fenced any more`) });
  expect(nameless).toMatchObject({ code: 2, err: expect.stringContaining("needs the name of a table") });
  expect(await run("unfence", name)).toMatchObject({ code: 1, err: expect.stringContaining("is not fenced") });
});
