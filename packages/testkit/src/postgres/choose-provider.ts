// Decides who runs the Postgres servers. It must not start any.
import type { PostgresProvider } from "./provider.js";

export type PostgresProviderName = "local" | "docker";

/** How each provider is made; loaded on demand, so that nobody pays for one that is not used. */
const providers: Readonly<Partial<Record<PostgresProviderName, () => Promise<PostgresProvider>>>> = {
  local: async () => (await import("./local-postgres.js")).localPostgres,
  docker: async () => (await import("../docker/docker-postgres.js")).dockerPostgres,
};

/** The provider asked for by option, else by `PALISADE_TEST_PROVIDER`, else the local one. */
export async function chooseProvider(wanted: PostgresProviderName | undefined): Promise<PostgresProvider> {
  const name = wanted ?? (process.env.PALISADE_TEST_PROVIDER || "local");
  const make = Object.hasOwn(providers, name) ? providers[name as PostgresProviderName] : undefined;
  if (make === undefined) {
    const known = Object.keys(providers).join(", ");
    throw new RangeError(`no Postgres provider is called ${JSON.stringify(name)} (PALISADE_TEST_PROVIDER); there are: ${known}`);
  }
  return await make();
}
