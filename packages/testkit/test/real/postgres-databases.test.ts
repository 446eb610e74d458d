// Databases are apart from each other, and a template is built once however many ask for it.
import { connectTo, queryAt } from "@palisade/testkit";
import { describe, expect, test } from "@palisade/testkit/vitest";

const createNotes = (url: string): Promise<unknown> => queryAt(url, "create table notes (text text)");

describe("template", () => {
  test("a template that several ask for at once is migrated once", async ({ postgres }) => {
    let migrations = 0;
    const migrate = async (url: string): Promise<void> => {
      migrations += 1;
      await createNotes(url);
    };
    await Promise.all([1, 2, 3].map(() => postgres.template("once", migrate)));
    expect(migrations).toBe(1);
    await using copy = await postgres.createDatabase({ from: "once" });
    expect(await queryAt(copy.url, "select text from notes")).toEqual([]);
  });

  test("a migration that fails leaves nothing behind, and the next one builds the template", async ({ postgres }) => {
    const names = (): Promise<unknown[]> =>
      queryAt(postgres.url, "select datname from pg_database where datname like 'template\\_failing'");
    const failing = postgres.template("failing", async () => {
      throw new Error("no such column");
    });
    await expect(failing).rejects.toThrow("no such column");
    expect(await names()).toEqual([]);
    await postgres.template("failing", createNotes);
    expect(await names()).toEqual([{ datname: "template_failing" }]);
  });
});

describe("database", () => {
  test("a dropped database is gone, also when sessions were connected", async ({ postgres }) => {
    const database = await postgres.createDatabase("dropped-while-in-use");
    const client = await connectTo(database.url); // The drop cuts it; that is the point.
    const cut = new Promise((resolve) => client.once("end", resolve));
    await database.drop();
    await cut;
    await expect(queryAt(database.url, "select 1")).rejects.toThrow("does not exist");
  });

  test("a name that could mean something to SQL is refused before it is sent", async ({ postgres }) => {
    await expect(postgres.createDatabase('x"; drop database postgres')).rejects.toThrow(TypeError);
  });
});
