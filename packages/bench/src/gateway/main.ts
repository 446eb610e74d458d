// The gateway's benchmarks, all on one Postgres.
import { type ComparedServers, openServers } from "./compared-servers.js";
import { measureGrowth } from "./growth.js";
import { measureOwnTables } from "./own-tables.js";
import { measureProbes } from "./probes.js";
import { comparePuts } from "./puts.js";
import { measureRefusals } from "./refusals.js";
import { measureStatement } from "./statement-cost.js";
import { measureTransactions } from "./transactions.js";

const parts: Readonly<Record<string, (servers: ComparedServers) => Promise<void>>> = {
  refusals: measureRefusals,
  puts: async (servers) => {
    await comparePuts(servers, 64);
    await comparePuts(servers, 1);
  },
  transactions: measureTransactions,
  statement: measureStatement,
  "own-tables": measureOwnTables,
  probes: measureProbes,
  growth: measureGrowth,
};

export const gatewayParts = Object.keys(parts);

export async function benchGateway(chosen: readonly string[]): Promise<void> {
  await using servers = await openServers();
  console.log(servers.postgres.description);
  for (const [name, measure] of Object.entries(parts)) if (chosen.includes(name)) await measure(servers);
}
