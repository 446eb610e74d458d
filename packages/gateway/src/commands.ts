// The commands of the program palisade-gateway. Each answers with its exit code; configuration
// comes from the environment alone.
import { parseArgs } from "node:util";
import { fencedTables, inspectFences, unfence } from "@palisade/guard";
import { bringUpToDate, connectToLock, createGateway, type Gateway } from "./gateway.js";
import { makeApiKey } from "./http/api-keys.js";
import { apiKeyFile } from "./http/auth.js";
import { firstIssue } from "./http/schemas.js";
import { createLog } from "./observe/log.js";
import { recover } from "./recover.js";
import { loadCredentials } from "./settings/credentials.js";
import {
  type EnvironmentSettings,
  GatewayConfigError,
  hasCredentials,
  readEnvironment,
  type Setting,
  type Settings,
  settings as table,
  verifyMode,
} from "./settings/settings.js";
import { withClient } from "./store/database-url.js";
import { distribute, grantRoles, MOST_SHARDS } from "./store/migrate.js";
import { version } from "./version.generated.js";

const naming = (key: keyof Settings): string => table[key].env;

export function read(): EnvironmentSettings {
  const environment = readEnvironment(process.env);
  for (const name of environment.unknownNames) console.error(`palisade-gateway: ${name} is not a setting of the gateway; it is ignored.`);
  return environment;
}

export async function serve(args: readonly string[]): Promise<number> {
  noArguments(args);
  const { settings } = read();
  const gateway = createGateway(settings, { naming });
  const signalled = nextSignal();
  process.on("SIGHUP", () => void gateway.reloadCredentials());
  try {
    // A signal while still waiting for Postgres stops the start.
    await Promise.race([gateway.listen(), signalled]);
  } catch (error) {
    await gateway.close();
    throw error;
  }
  await signalled;
  return leave(gateway);
}

// The listener stays: without it, a second SIGTERM during the drain would kill the process like a
// crash.
function nextSignal(): Promise<void> {
  return new Promise((resolve) => {
    let count = 0;
    for (const [signal, number] of [
      ["SIGTERM", 15],
      ["SIGINT", 2],
    ] as const) {
      process.on(signal, () => {
        count += 1;
        if (count > 1) process.exit(128 + number);
        resolve();
      });
    }
  });
}

async function leave(gateway: Gateway): Promise<number> {
  const { unfinished } = await gateway.close();
  // Whatever still holds the event loop has had its time.
  setTimeout(() => process.exit(), 1_000).unref();
  return unfinished === 0 ? 0 : 1;
}

/** With --citus the tables are then spread over the workers, with the rows they have. */
export async function runMigrations(args: readonly string[]): Promise<number> {
  const options = { citus: { type: "boolean" }, shards: { type: "string" } } as const;
  const { values } = parseArgs({ args: [...args], options, strict: true });
  const shards = values.shards === undefined ? undefined : Number(values.shards);
  if (shards !== undefined && (values.citus !== true || !Number.isInteger(shards) || shards < 1 || shards > MOST_SHARDS))
    throw new GatewayConfigError([`--shards is a number from 1 to ${MOST_SHARDS}, with --citus.`]);
  const { databaseUrl } = read().settings;
  const log = createLog("info");
  await bringUpToDate(databaseUrl, log);
  if (values.citus !== true) return 0;
  const { distributed, ...report } = await distribute(databaseUrl, { shards });
  log.info(report, distributed ? "the tables were distributed" : "the tables are distributed, as they were before");
  return 0;
}

/** Gives the roles of the gateway and of applications their rights; for the owner of the schema. */
export async function grant(args: readonly string[]): Promise<number> {
  noArguments(args);
  await grantRoles(read().settings.databaseUrl);
  return 0;
}

/**
 * Raises the fences of a restored database to what the lock's nodes know. For the owner of the
 * schema; prints what it did.
 */
export async function recoverFences(args: readonly string[]): Promise<number> {
  const options = { reason: { type: "string" }, "nothing-lost": { type: "boolean" } } as const;
  const { values } = parseArgs({ args: [...args], options, strict: true });
  const { databaseUrl, redisUrls, namespace } = read().settings;
  if (redisUrls === undefined) throw new GatewayConfigError([`${naming("redisUrls")} is missing: the lock's nodes know the fences.`]);
  const reason = values.reason ?? "";
  if (reason === "") throw new GatewayConfigError(["recover needs --reason TEXT; it is kept with the recovery."]);
  const lock = await connectToLock(redisUrls, namespace);
  try {
    await lock.ready();
    const lost = values["nothing-lost"] === true ? "nothing" : "unknown";
    console.log(JSON.stringify(await recover({ databaseUrl, lock: lock.fleet, by: "palisade-gateway recover", reason, lost })));
  } finally {
    await lock.close();
  }
  return 0;
}

export function checkConfig(args: readonly string[]): number {
  noArguments(args);
  const { settings } = read();
  const { summary } = loadCredentials(settings, naming);
  console.log(
    `The configuration is good. Credentials: ${summary}. Durability: ${settings.durability}. Tokens above a fence are verified: ${verifyMode(settings)}.`,
  );
  if (!hasCredentials(settings)) console.log(`Without credentials the gateway listens on ${settings.host} only.`);
  return 0;
}

/** Prints a new key and the entry for the key file; the key itself is stored nowhere. */
export function keygen(args: readonly string[]): number {
  const { values } = parseArgs({
    args: [...args],
    options: { id: { type: "string" }, scope: { type: "string", multiple: true }, "expires-at": { type: "string" } },
    strict: true,
  });
  const { key, sha256 } = makeApiKey();
  const entry = apiKeyFile.shape.keys.element.safeParse({
    id: values.id,
    sha256,
    scopes: values.scope ?? [],
    expiresAt: values["expires-at"],
  });
  if (!entry.success)
    throw new GatewayConfigError([
      `keygen needs --id NAME, --scope ACTION:PREFIX at least once and perhaps --expires-at TIME (${firstIssue(entry.error)}).`,
    ]);
  console.log(JSON.stringify({ key, entry: entry.data }, null, 2));
  return 0;
}

export function printVersion(): number {
  console.log(version);
  return 0;
}

export function printHelp(): number {
  console.log(helpText());
  return 0;
}

function helpText(): string {
  const lines = Object.values<Setting>(table).map(({ env, help, mustBe, fallback }) => {
    const preset = fallback === undefined ? "" : ` Default: ${String(fallback)}.`;
    return `  ${env}\n      ${help} Must be ${mustBe}.${preset}`;
  });
  return `palisade-gateway [serve]        serve resources over HTTP until SIGTERM
palisade-gateway migrate        bring the schema of the database up to date
palisade-gateway migrate --citus [--shards N]
                                also distribute its tables over the workers of Citus, while no gateway writes
palisade-gateway grant          give the roles palisade_gateway and palisade_app their rights, as the owner of the schema
palisade-gateway recover --reason TEXT [--nothing-lost]
                                after a restore: raise all fences to what the lock's nodes know, as the owner of the schema;
                                with --nothing-lost leave them, because no acknowledged write is missing
palisade-gateway keygen --id NAME --scope ACTION:PREFIX [--scope …] [--expires-at TIME]
                                make an API key; prints it once, with the entry for the key file
palisade-gateway fences         list the fenced tables of the database
palisade-gateway unfence TABLE  take the fence from a table, as its owner
palisade-gateway doctor         name every way around the fences of the tables; 1 if one is open
palisade-gateway --check-config say whether the environment is understood
palisade-gateway --version
palisade-gateway --help

Everything is configured by environment variables; an empty one counts as absent.

${lines.join("\n")}`;
}

export function noArguments(args: readonly string[]): void {
  if (args.length > 0) throw new GatewayConfigError([`${JSON.stringify(args[0])} is not understood here; --help lists what is.`]);
}

// The commands about the user's own tables: what is fenced, taking a fence away, and every way
// around them.

export async function fences(args: readonly string[]): Promise<number> {
  noArguments(args);
  const tables = await withClient(read().settings.databaseUrl, fencedTables);
  for (const { table, prefix, keyColumns, enabled } of tables)
    console.log(`${table}: ${prefix}{${keyColumns.join("}/{")}}${enabled ? "" : "; its trigger is disabled"}`);
  if (tables.length === 0) console.log("No table is fenced.");
  return 0;
}

export async function unfenceTable(args: readonly string[]): Promise<number> {
  const [table, ...rest] = args;
  if (table === undefined || table === "") throw new GatewayConfigError(["unfence needs the name of a table."]);
  noArguments(rest);
  await withClient(read().settings.databaseUrl, (client) => unfence(client, table));
  console.log(`${table} is not fenced any more: every write to it passes. The fences of its resources stay.`);
  return 0;
}

/** Exit code 1 when writes pass a fence now, as with a check that fails. */
export async function doctor(args: readonly string[]): Promise<number> {
  noArguments(args);
  const findings = await withClient(read().settings.databaseUrl, inspectFences);
  for (const { kind, way, table, detail } of findings) console.log(`${kind.padEnd(10)}  ${table ?? "every table"}: ${detail} (${way})`);
  const open = findings.filter(({ kind }) => kind === "open").length;
  console.log(open === 0 ? "No way around the fences is open." : `${open} ${open === 1 ? "way" : "ways"} around the fences open.`);
  return open === 0 ? 0 : 1;
}
