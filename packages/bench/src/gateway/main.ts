// The gateway's benchmarks, all on one Postgres.
import { type Arena, openArena } from "./contestants.js";
import { comparePuts } from "./puts.js";
import { measureRefusals } from "./refusals.js";
import { measureStatement } from "./statement-cost.js";
import { measureTransactions } from "./transactions.js";

const parts: Readonly<Record<string, (arena: Arena) => Promise<void>>> = {
  refusals: measureRefusals,
  puts: async (arena) => {
    await comparePuts(arena, 64);
    await comparePuts(arena, 1);
  },
  transactions: measureTransactions,
  statement: measureStatement,
};

export const gatewayParts = Object.keys(parts);

export async function benchGateway(chosen: readonly string[]): Promise<void> {
  await using arena = await openArena();
  console.log(arena.postgres.description);
  for (const [name, measure] of Object.entries(parts)) if (chosen.includes(name)) await measure(arena);
}
