// The parts of the gateway, all on one Postgres.
import type { Context, Part } from "../measure/part.js";
import { measureCitus } from "./citus.js";
import { type Bench, PostgresLog, startLoadClient } from "./http-contestant.js";
import { measureOwnTables } from "./own-tables.js";
import { Servers } from "./servers.js";
import { measureTables } from "./table-sizes.js";
import { measureTransactions } from "./transactions.js";
import { httpRows, measureGateways, measureHttp, measureRefusals } from "./writes.js";

type GatewayPart = Part & { run(bench: Bench, context: Context): Promise<void> };

const rows = (name: keyof typeof httpRows) => (bench: Bench, context: Context) => measureHttp(bench, context, httpRows[name]);

export const gatewayParts: readonly GatewayPart[] = [
  {
    name: "puts",
    what: "PUTs over 64 connections and one: fenced, beside hand-written servers without a token, and the ceiling",
    from: "quick",
    run: rows("puts"),
  },
  { name: "gets", what: "GETs over 64 connections and one", from: "quick", run: rows("gets") },
  { name: "hot-key", what: "PUTs of one resource", from: "quick", run: rows("hot-key") },
  {
    name: "refusals",
    what: "what a refused write costs, beside an accepted one; its bytes in the log",
    from: "quick",
    run: measureRefusals,
  },
  {
    name: "transactions",
    what: "a hundred puts in one transaction, beside one statement that compares all tokens",
    from: "quick",
    run: measureTransactions,
  },
  { name: "sizes", what: "PUTs of 0.1, 1, 10 and 100 kB", from: "usual", run: rows("sizes") },
  { name: "gateways", what: "1, 2 and 4 processes in front of one database", from: "usual", run: measureGateways },
  {
    name: "table-size",
    what: "PUT and GET among 10³ to 10⁶ resources",
    from: "usual",
    run: measureTables("table-size", [1_000, 10_000, 100_000, 1_000_000]),
  },
  {
    name: "largest-table",
    what: "PUT and GET among 10³ and 10⁷ resources",
    from: "all",
    run: measureTables("largest-table", [1_000, 10_000_000]),
  },
  {
    name: "own-tables",
    what: "the guard in front of a transaction, and the trigger of a fenced table",
    from: "usual",
    run: measureOwnTables,
  },
  {
    name: "citus",
    what: "PUTs on 1, 2 and 4 workers of Citus, beside the same Postgres without it; needs PALISADE_TEST_CITUS",
    from: "named",
    run: measureCitus,
  },
];

export async function benchGateway(chosen: readonly GatewayPart[], context: Context): Promise<void> {
  await using servers = await Servers.start(context.beside);
  const client = startLoadClient();
  const log = await PostgresLog.of(servers);
  try {
    context.note("postgres", await log.version());
    for (const part of chosen) await part.run({ servers, client, log }, context);
  } finally {
    await log.close();
    await client.kill();
  }
}
