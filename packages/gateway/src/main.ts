#!/usr/bin/env node
// The program of `npx @palisade/gateway`: runs one command and leaves with an exit code that says how it went.
// Configuration comes from the environment alone. Exit codes: 0 done, 1 failed, 2 wrong arguments or
// configuration. A second signal leaves at once.
import { type ParseArgsConfig, parseArgs } from "node:util";
import { fencedTables, inspectFences, unfence } from "@palisade/guard";
import { withClient } from "@palisade/guard/gateway";
import { grantRoles } from "@palisade/guard/schema";
import { bringUpToDate, connectToLock, createGateway } from "./gateway.js";
import { makeApiKey } from "./http/api-keys.js";
import { apiKeyFile } from "./http/auth.js";
import { firstIssue } from "./http/schemas.js";
import { createLog } from "./observe/log.js";
import { recover } from "./recover.js";
import { Credentials } from "./settings/credentials.js";
import { GatewayConfigError, readEnvironment, type Setting, type Settings, settings as table, verifyMode } from "./settings/settings.js";
import { distribute, MOST_SHARDS } from "./store/distribute.js";
import { version } from "./version.generated.js";

const naming = (key: keyof Settings): string => table[key].env;

function read(): Settings {
  const { settings, unknownNames } = readEnvironment(process.env);
  for (const name of unknownNames) console.error(`palisade-gateway: ${name} is not a setting of the gateway; it is ignored.`);
  return settings;
}

async function serve(): Promise<number> {
  const gateway = createGateway(read(), { naming });
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
  const { unfinished } = await gateway.close();
  return unfinished === 0 ? 0 : 1;
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

/** With --citus the tables are then spread over the workers, with the rows they have. */
async function runMigrations(flags: Flags): Promise<void> {
  const shards = flags.shards === undefined ? undefined : Number(flags.shards);
  if (shards !== undefined && (flags.citus !== true || !Number.isInteger(shards) || shards < 1 || shards > MOST_SHARDS))
    throw new GatewayConfigError([`--shards is a number from 1 to ${MOST_SHARDS}, with --citus.`]);
  const { databaseUrl } = read();
  const log = createLog("info");
  await bringUpToDate(databaseUrl, log);
  if (flags.citus !== true) return;
  const { distributed, ...report } = await distribute(databaseUrl, { shards });
  log.info(report, distributed ? "the tables were distributed" : "the tables are distributed, as they were before");
}

async function recoverFences(flags: Flags): Promise<void> {
  const { databaseUrl, redisUrls, namespace } = read();
  if (redisUrls === undefined) throw new GatewayConfigError([`${naming("redisUrls")} is missing: the lock's nodes know the fences.`]);
  const { reason = "" } = flags;
  if (typeof reason !== "string" || reason === "")
    throw new GatewayConfigError(["recover needs --reason TEXT; it is kept with the recovery."]);
  const lock = await connectToLock(redisUrls, namespace);
  try {
    await lock.ready();
    const lost = flags["nothing-lost"] === true ? "nothing" : "unknown";
    console.log(JSON.stringify(await recover({ databaseUrl, lock: lock.fleet, by: "palisade-gateway recover", reason, lost })));
  } finally {
    await lock.close();
  }
}

function checkConfig(): void {
  const settings = read();
  const { summary, isOpen } = new Credentials(settings, naming);
  console.log(
    `The configuration is good. Credentials: ${summary}. Durability: ${settings.durability}. Tokens above a fence are verified: ${verifyMode(settings)}.`,
  );
  if (isOpen) console.log(`Without credentials the gateway listens on ${settings.host} only.`);
}

/** The key itself is stored nowhere. */
function keygen(flags: Flags): void {
  const { key, sha256 } = makeApiKey();
  const { id, scope: scopes = [], "expires-at": expiresAt } = flags;
  const entry = apiKeyFile.shape.keys.element.safeParse({ id, sha256, scopes, expiresAt });
  if (!entry.success)
    throw new GatewayConfigError([
      `keygen needs --id NAME, --scope ACTION:PREFIX at least once and perhaps --expires-at TIME (${firstIssue(entry.error)}).`,
    ]);
  console.log(JSON.stringify({ key, entry: entry.data }, null, 2));
}

async function listFences(): Promise<void> {
  const tables = await withClient(read().databaseUrl, fencedTables);
  for (const { table, prefix, keyColumns, enabled } of tables)
    console.log(`${table}: ${prefix}{${keyColumns.join("}/{")}}${enabled ? "" : "; its trigger is disabled"}`);
  if (tables.length === 0) console.log("No table is fenced.");
}

async function unfenceTable(_flags: Flags, table: string | undefined): Promise<void> {
  if (table === undefined || table === "") throw new GatewayConfigError(["unfence needs the name of a table."]);
  await withClient(read().databaseUrl, (client) => unfence(client, table));
  console.log(`${table} is not fenced any more: every write to it passes. The fences of its resources stay.`);
}

/** Exit code 1 when writes pass a fence now, as with a check that fails. */
async function doctor(): Promise<number> {
  const findings = await withClient(read().databaseUrl, inspectFences);
  for (const { kind, way, table, detail } of findings) console.log(`${kind.padEnd(10)}  ${table ?? "every table"}: ${detail} (${way})`);
  const open = findings.filter(({ kind }) => kind === "open").length;
  console.log(open === 0 ? "No way around the fences is open." : `${open} ${open === 1 ? "way" : "ways"} around the fences open.`);
  return open === 0 ? 0 : 1;
}

type Flags = Readonly<ReturnType<typeof parseArgs>["values"]>;

interface Command {
  /** As --help has them: how it is called, and what it does then. */
  readonly help: readonly (readonly [call: string, does: string])[];
  readonly flags?: ParseArgsConfig["options"];
  /** Whether a word may follow. */
  readonly takesWord?: boolean;
  /** A number is the exit code; anything else is 0. */
  run(flags: Flags, word: string | undefined): unknown;
}

const commands: Readonly<Record<string, Command>> = {
  serve: { help: [["[serve]", "serve resources over HTTP until SIGTERM"]], run: serve },
  migrate: {
    help: [
      ["migrate", "bring the schema of the database up to date"],
      ["migrate --citus [--shards N]", "also distribute its tables over the workers of Citus, while no gateway writes"],
    ],
    flags: { citus: { type: "boolean" }, shards: { type: "string" } },
    run: runMigrations,
  },
  grant: {
    help: [["grant", "give the roles palisade_gateway and palisade_app their rights, as the owner of the schema"]],
    run: () => grantRoles(read().databaseUrl),
  },
  recover: {
    help: [
      ["recover --reason TEXT", "after a restore: raise all fences to what the lock's nodes know, as the owner of the schema"],
      ["recover --reason TEXT --nothing-lost", "leave them, because no acknowledged write is missing"],
    ],
    flags: { reason: { type: "string" }, "nothing-lost": { type: "boolean" } },
    run: recoverFences,
  },
  keygen: {
    help: [
      [
        "keygen --id NAME --scope ACTION:PREFIX [--scope …] [--expires-at TIME]",
        "make an API key; prints it once, with the entry for the key file",
      ],
    ],
    flags: { id: { type: "string" }, scope: { type: "string", multiple: true }, "expires-at": { type: "string" } },
    run: keygen,
  },
  fences: { help: [["fences", "list the fenced tables of the database"]], run: listFences },
  unfence: { help: [["unfence TABLE", "take the fence from a table, as its owner"]], takesWord: true, run: unfenceTable },
  doctor: { help: [["doctor", "name every way around the fences of the tables; 1 if one is open"]], run: doctor },
  "--check-config": { help: [["--check-config", "say whether the environment is understood"]], run: checkConfig },
  "--version": { help: [["--version", "print the version"]], run: () => console.log(version) },
  "--help": { help: [["--help", "print this"]], run: () => console.log(helpText()) },
  "-h": { help: [], run: () => console.log(helpText()) },
};

function helpText(): string {
  const calls = Object.values(commands).flatMap(({ help }) => help);
  const lines = calls.map(([call, does]) => {
    const start = `npx @palisade/gateway ${call}`;
    return start.length < 36 ? start.padEnd(36) + does : `${start}\n${" ".repeat(36)}${does}`;
  });
  const variables = Object.values<Setting>(table).map(({ env, help, mustBe, fallback }) => {
    const preset = fallback === undefined ? "" : ` Default: ${String(fallback)}.`;
    return `  ${env}\n      ${help} Must be ${mustBe}.${preset}`;
  });
  return `${lines.join("\n")}

Everything is configured by environment variables; an empty one counts as absent.

${variables.join("\n")}`;
}

async function main([name = "serve", ...args]: readonly string[]): Promise<number> {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) return refuse(2, `palisade-gateway has no command ${JSON.stringify(name)}; --help lists them.`);
  const { flags: options = {}, takesWord = false } = command;
  try {
    const { values, positionals } = parseArgs({ args, options, strict: true, allowPositionals: true });
    const tooMany = positionals[takesWord ? 1 : 0];
    if (tooMany !== undefined) throw new GatewayConfigError([`${JSON.stringify(tooMany)} is not understood here; --help lists what is.`]);
    const code = await command.run(values, positionals[0]);
    return typeof code === "number" ? code : 0;
  } catch (error) {
    if (error instanceof GatewayConfigError) return refuse(2, ...error.problems.map((problem) => `palisade-gateway: ${problem}`));
    const isArgument = String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS");
    return refuse(isArgument ? 2 : 1, `palisade-gateway: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function refuse(code: number, ...sentences: readonly string[]): number {
  for (const sentence of sentences) console.error(sentence);
  return code;
}

process.exitCode = await main(process.argv.slice(2));
// Whatever still holds the event loop, such as output that nobody reads, has had its time.
setTimeout(() => process.exit(), 1_000).unref();
