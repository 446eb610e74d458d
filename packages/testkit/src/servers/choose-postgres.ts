// Chooses the provider that runs the Postgres servers; none is started here.

import type { PostgresProvider } from "../postgres/provider.js";
import { type Choice, onlyWay } from "./only-way.js";

export type PostgresProviderName = "local" | "docker";

type Providers = Readonly<Record<PostgresProviderName, () => Promise<PostgresProvider>>>;

/** How each provider is made; loaded on demand, so that an unused one costs nothing. */
const providers: Providers = {
  local: async () => (await import("../postgres/local-postgres.js")).localPostgres,
  docker: async () => (await import("../docker/docker-postgres.js")).dockerPostgres,
};

/** Where to look; the parameter exists so that every branch can be tested on one machine. */
export interface World {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly providers: Providers;
}

/** By option, else by `PALISADE_TEST_PROVIDER`, else the local provider, else containers. */
export async function chooseProvider(
  wanted: PostgresProviderName | undefined,
  { environment, providers: among }: World = { environment: process.env, providers },
): Promise<Choice<PostgresProvider>> {
  const name = wanted ?? (environment.PALISADE_TEST_PROVIDER || undefined);
  if (name === undefined) return await onlyWay({ ...among, asked: environment.PALISADE_POSTGRES_BIN });
  if (!Object.hasOwn(among, name)) {
    const known = Object.keys(among).join(", ");
    throw new RangeError(`no Postgres provider is called ${JSON.stringify(name)} (PALISADE_TEST_PROVIDER); there are: ${known}`);
  }
  const provider = await among[name as PostgresProviderName]();
  return { provider, origin: await provider.describe() };
}
