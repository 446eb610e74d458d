// What the fence adds to the SQL: the gateway's statement against the same statement without its
// conditions, in turns over one connection.
import { hrtime } from "node:process";
import pg from "pg";
import { ratio } from "../measure/statistics.js";
import { fixed, heading, median, progress, progressEnded, table } from "../report.js";
import type { ComparedServers } from "./compared-servers.js";

const ROUNDS = 40;

// The statement itself, from the compiled gateway; the package does not export it.
interface Guard {
  fencedWrite(form: object): { name: string; text: string };
  parametersOf(rows: readonly object[]): (string | Buffer)[];
}

interface Session {
  readonly OPEN_SESSION: string;
  sessionParameters(limits: { readonly lockWaitMs: number; readonly statementTimeoutMs: number }): string[];
}

const compiled = (file: string): Promise<unknown> => import(new URL(`../../../gateway/dist/${file}`, import.meta.url).href);
const { fencedWrite, parametersOf } = (await compiled("guard/fenced-statement.js")) as Guard;
const { OPEN_SESSION, sessionParameters } = (await compiled("store/session.js")) as Session;
const form = { rows: "known", scope: "each", keys: "none", history: "off", durability: "local", documentLimitBytes: 16_777_216 };

function fenced(): { name: string; text: string } {
  return fencedWrite(form);
}

/** The join by name stays; every condition that can refuse is removed. */
function unfenced(): { name: string; text: string } {
  const { text } = fenced();
  const condition = /(where stored\.resource = request\.resource)[\s\S]*(\n {2}returning)/;
  if (!condition.test(text)) throw new Error("the statement has a new form, which this benchmark does not know");
  return { name: "unfenced", text: text.replace(condition, "$1$2") };
}

async function microsecondsPerRow(client: pg.Client, statement: { name: string; text: string }, rowsEach: number): Promise<number> {
  const statements = Math.max(20, Math.ceil(1_000 / rowsEach));
  const startedAt = hrtime.bigint();
  for (let i = 0; i < statements; i += 1) {
    const rows = Array.from({ length: rowsEach }, (_, j) => ({
      request: { op: "put" as const, resource: `cost/${String(j).padStart(4, "0")}`, token: 7, value: '{"n":1}' },
      verified: true,
    }));
    const { rowCount } = await client.query({ ...statement, values: parametersOf(rows) });
    if (rowCount !== rowsEach) throw new Error(`${rowCount} of ${rowsEach} rows were written`);
  }
  return Number(hrtime.bigint() - startedAt) / 1000 / (statements * rowsEach);
}

export async function measureStatement({ gatewayDatabase }: ComparedServers): Promise<void> {
  heading(
    "The fence in SQL",
    `microseconds per row over one connection, commits not waited for, ${ROUNDS} rounds in turns; ratio: median over the rounds`,
  );
  const client = new pg.Client({ connectionString: gatewayDatabase });
  await client.connect();
  try {
    // As the gateway's own connections.
    const { processID } = client as unknown as { readonly processID: number };
    await client.query(OPEN_SESSION, [...sessionParameters({ lockWaitMs: 1_000, statementTimeoutMs: 10_000 }), processID]);
    await client.query("set synchronous_commit = off"); // The disk would hide the difference.
    await client.query(
      `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, value, updated_at)
         select 'cost/' || lpad(i::text, 4, '0'), 7, 0, 1, 1, 'put', false, '{}', now()
         from generate_series(0, 999) i on conflict do nothing`,
    );
    const rows: string[][] = [];
    for (const rowsEach of [1, 10, 100]) {
      progress(`${rowsEach} rows per statement`);
      const samples = { fenced: [] as number[], unfenced: [] as number[] };
      for (let round = -2; round < ROUNDS; round += 1) {
        const order = round % 2 === 0 ? (["fenced", "unfenced"] as const) : (["unfenced", "fenced"] as const);
        for (const which of order) {
          const cost = await microsecondsPerRow(client, which === "fenced" ? fenced() : unfenced(), rowsEach);
          if (round >= 0) samples[which].push(cost);
        }
      }
      rows.push([
        String(rowsEach),
        fixed(median(samples.unfenced), 1),
        fixed(median(samples.fenced), 1),
        fixed(ratio(samples.fenced, samples.unfenced), 3),
      ]);
    }
    progressEnded();
    console.log(table([{ title: "rows per statement" }, { title: "unfenced µs" }, { title: "fenced µs" }, { title: "ratio" }], rows));
  } finally {
    await client.end();
  }
}
