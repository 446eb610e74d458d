#!/usr/bin/env node
// The program palisade-gateway: runs one command and leaves with an exit code that says how it
// went. Exit codes: 0 done, 1 failed, 2 wrong arguments or configuration. A second signal leaves at
// once.
import {
  checkConfig,
  doctor,
  fences,
  grant,
  keygen,
  printHelp,
  printVersion,
  recoverFences,
  runMigrations,
  serve,
  unfenceTable,
} from "./commands.js";
import { GatewayConfigError } from "./settings/settings.js";

const commands: Readonly<Record<string, (args: readonly string[]) => Promise<number> | number>> = {
  serve,
  migrate: runMigrations,
  grant,
  recover: recoverFences,
  keygen,
  fences,
  unfence: unfenceTable,
  doctor,
  "--check-config": checkConfig,
  "--version": printVersion,
  "--help": printHelp,
  "-h": printHelp,
};

async function main(args: readonly string[]): Promise<number> {
  const [name = "serve", ...rest] = args;
  const command = commands[name];
  if (command === undefined) {
    console.error(`palisade-gateway has no command ${JSON.stringify(name)}; --help lists them.`);
    return 2;
  }
  try {
    return await command(rest);
  } catch (error) {
    if (error instanceof GatewayConfigError) {
      for (const problem of error.problems) console.error(`palisade-gateway: ${problem}`);
      return 2;
    }
    console.error(`palisade-gateway: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
