// SQL over one connection of this process as a contestant: as many operations as fit into a round.
import { hrtime } from "node:process";
import type { PostgresServer } from "@palisade/testkit";
import type { Contestant } from "../measure/comparison.js";
import { pidsOf } from "./servers.js";

export interface Sql {
  readonly name: string;
  readonly does: string;
  /** The microseconds of each operation that it did; several, if one statement does several. */
  once(): Promise<readonly number[]>;
}

export function sqlContestant(postgres: PostgresServer, { name, does, once }: Sql): Contestant {
  return {
    name,
    does,
    kind: "ours",
    processes: { client: () => [process.pid], postgres: () => pidsOf(postgres) },
    async round(seconds) {
      const latenciesUs: number[] = [];
      const startedAt = performance.now();
      const until = startedAt + seconds * 1_000;
      do latenciesUs.push(...(await once()));
      while (performance.now() < until);
      return { operations: latenciesUs.length, seconds: (performance.now() - startedAt) / 1_000, latenciesUs };
    },
  };
}

export async function microseconds(work: () => Promise<unknown>): Promise<number> {
  const startedAt = hrtime.bigint();
  await work();
  return Number(hrtime.bigint() - startedAt) / 1_000;
}
