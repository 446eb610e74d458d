// What the fence adds to the SQL: the gateway's statement against the same statement without its
// conditions, in turns over one connection.
import { connectTo, PostgresServer } from "@palisade/testkit";
import type pg from "pg";
import type { Context } from "../measure/part.js";
import { microseconds, sqlContestant } from "./query-contestant.js";

interface Statement {
  readonly name: string;
  readonly text: string;
}

// The statement itself, from the compiled gateway; the package does not export it.
interface Guard {
  fencedWrite(form: object): Statement;
  parametersOf(rows: readonly object[]): (string | Buffer)[];
}

interface Session {
  readonly OPEN_SESSION: string;
  sessionParameters(limits: { readonly lockWaitMs: number; readonly statementTimeoutMs: number }): string[];
}

const compiled = (file: string): Promise<unknown> => import(new URL(`../../../gateway/dist/${file}`, import.meta.url).href);
const form = { rows: "known", scope: "each", keys: "none", history: "off", durability: "local", documentLimitBytes: 16_777_216 };

/** The join by name stays; every condition that can refuse is removed. */
function unfenced({ text }: Statement): Statement {
  const condition = /(where stored\.resource = request\.resource)[\s\S]*(\n {2}returning)/;
  if (!condition.test(text)) throw new Error("the statement has a new form, which this benchmark does not know");
  return { name: "unfenced", text: text.replace(condition, "$1$2") };
}

async function prepare(client: pg.Client): Promise<void> {
  const { OPEN_SESSION, sessionParameters } = (await compiled("store/session.js")) as Session;
  // As the gateway's own connections.
  const { processID } = client as unknown as { readonly processID: number };
  await client.query(OPEN_SESSION, [...sessionParameters({ lockWaitMs: 1_000, statementTimeoutMs: 10_000 }), processID]);
  await client.query(
    `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, value, updated_at)
       select 'cost/' || lpad(i::text, 4, '0'), 7, 0, 1, 1, 'put', false, '{}', now()
       from generate_series(0, 999) i on conflict do nothing`,
  );
}

export async function measureStatement(context: Context): Promise<void> {
  context.progress.begin("The fence in SQL");
  const { fencedWrite } = (await compiled("guard/fenced-statement.js")) as Guard;
  const { parametersOf } = (await compiled("guard/plain-writes.js")) as Guard;
  const fenced = fencedWrite(form);
  // The disk would hide the difference: this server forces nothing to it.
  await using postgres = await PostgresServer.start();
  const { migrate } = (await compiled("store/migrate.js")) as { migrate(url: string): Promise<unknown> };
  await migrate(postgres.url);
  await using client = await connectTo(postgres.url);
  await prepare(client);
  for (const rowsEach of [1, 10, 100]) {
    const rows = Array.from({ length: rowsEach }, (_, j) => ({
      request: { op: "put" as const, resource: `cost/${String(j).padStart(4, "0")}`, token: 7, value: '{"n":1}' },
      verified: true,
    }));
    const run = async (statement: Statement): Promise<readonly number[]> => {
      const took = await microseconds(async () => {
        const { rowCount } = await client.query({ ...statement, values: parametersOf(rows) });
        if (rowCount !== rowsEach) throw new Error(`${rowCount} of ${rowsEach} rows were written`);
      });
      return Array.from({ length: rowsEach }, () => took / rowsEach);
    };
    await context.compare({
      id: `statement/${rowsEach}`,
      title: `The fence in SQL, ${rowsEach === 1 ? "one row" : `${rowsEach} rows`} per statement`,
      remark: "a row over one connection, nothing forced to disk",
      effort: context.effort({ rounds: 20, seconds: 0.1 }),
      contestants: [
        sqlContestant(postgres, { name: "unfenced", does: "the statement without its conditions", once: () => run(unfenced(fenced)) }),
        sqlContestant(postgres, { name: "fenced", does: "the statement of the gateway", once: () => run(fenced) }),
      ],
      compared: "p50Us",
    });
  }
}
