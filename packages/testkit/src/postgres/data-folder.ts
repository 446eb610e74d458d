// Makes data folders for local servers. initdb takes half a second and its result does not depend on the server, so it runs once per version and account,
// and every server gets a copy. It must not start a server.
import { createHash } from "node:crypto";
import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { removeFolderAtExit } from "../process/living-children.js";
import type { PostgresInstallation } from "../resolve/postgres.js";
import { cached, run, temporaryFolder } from "../resolve/postgres-cache.js";

/** The superuser of every server. Anyone on this machine may connect as anyone: the servers listen on loopback and hold test data only. */
export const superuser = "postgres";

// Locale C: sorting and messages are the same on every machine, and messages can be recognised.
const initdbArguments = [
  "--username",
  superuser,
  "--auth",
  "trust",
  "--encoding",
  "UTF8",
  "--locale",
  "C",
  "--no-sync",
  "--no-instructions",
];

async function initialise({ binFolder, account }: PostgresInstallation, content: string): Promise<void> {
  const data = join(content, "data");
  await mkdir(data, { mode: 0o700 });
  if (account !== undefined) await chown(data, account.uid, account.gid);
  // initdb wants a current folder it may look at; ours can be closed to its account.
  await run(join(binFolder, "initdb"), [...initdbArguments, "--pgdata", data], {
    ...account,
    cwd: data,
    env: { PATH: process.env.PATH, TZ: "UTC" },
  });
}

async function emptyCluster(installation: PostgresInstallation): Promise<string> {
  const { binFolder, version, account } = installation;
  const recipe = createHash("sha256")
    .update(JSON.stringify([binFolder, version, account, initdbArguments]))
    .digest("hex")
    .slice(0, 8);
  const content = await cached({ name: `postgres-data-${version}-${recipe}`, account, fill: (folder) => initialise(installation, folder) });
  return join(content, "data");
}

export interface DataFolder {
  /** The temporary folder that holds it; removing this removes everything. */
  readonly root: string;
  readonly data: string;
}

/** A folder for one server, still empty. It is removed when this process ends, if not before. */
export async function makeRoot({ account }: PostgresInstallation): Promise<string> {
  const root = await temporaryFolder("palisade-postgres-", account);
  removeFolderAtExit(root);
  return root;
}

export async function newDataFolder(installation: PostgresInstallation): Promise<DataFolder> {
  const [root, source] = await Promise.all([makeRoot(installation), emptyCluster(installation)]);
  const data = join(root, "data");
  await run("cp", ["-a", source, data]); // With owner and mode: Postgres refuses a folder that is not its own or is open to others.
  return { root, data };
}
