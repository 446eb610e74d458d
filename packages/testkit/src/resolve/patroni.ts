// The programs of a Patroni cluster. Patroni and a whole Postgres, with pg_basebackup and
// pg_rewind, have to be installed. HAProxy and etcd are fetched where they are missing.
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { type FoundProgram, resolveEtcd, resolveHaproxy } from "./distribution-program.js";
import { systemFolders } from "./postgres.js";
import { type Account, run, serverAccount } from "./postgres-cache.js";
import type { Environment } from "./private-apt.js";

export interface PatroniPrograms {
  readonly patroni: string;
  /** With every program that Patroni runs. */
  readonly postgresFolder: string;
  readonly etcd: FoundProgram;
  readonly haproxy: FoundProgram;
  readonly account: Account | undefined;
  /** One line that says what was found. */
  readonly description: string;
}

/** What is missing and how to get it, as a sentence. */
export class MissingPrograms extends Error {}

const ofPostgres = ["postgres", "initdb", "pg_ctl", "pg_basebackup", "pg_rewind", "pg_controldata", "pg_isready"];
const PACKAGES = "patroni etcd-server haproxy postgresql";
const TIMEOUT_MS = 20_000;

interface Places {
  /** Where patroni may be, beside PATH. */
  readonly patroni: readonly string[];
}
const ofDistribution: Places = { patroni: ["/usr/bin", "/usr/local/bin"] };

/** Looks for all before it gives up, so that one message names everything. */
export async function resolvePatroniPrograms(env: Environment = process.env, places = ofDistribution): Promise<PatroniPrograms> {
  const account = serverAccount();
  const searched = await Promise.allSettled([findPatroni(env, places), findPostgres(env), resolveEtcd(), resolveHaproxy()]);
  const missing = searched.flatMap((one) => (one.status === "rejected" ? [(one.reason as Error).message] : []));
  if (missing.length > 0)
    throw new MissingPrograms(`this needs three Postgres servers under Patroni: ${missing.join("; ")}. apt-get install ${PACKAGES}`);
  const [patroni, postgres, etcd, haproxy] = searched.map((one) => (one as PromiseFulfilledResult<unknown>).value) as [
    Found,
    Found,
    FoundProgram,
    FoundProgram,
  ];
  return {
    patroni: patroni.path,
    postgresFolder: postgres.path,
    etcd,
    haproxy,
    account,
    description: `Postgres ${postgres.version} under Patroni ${patroni.version}, etcd ${etcd.version}, HAProxy ${haproxy.version}`,
  };
}

interface Found {
  readonly path: string;
  readonly version: string;
}

async function findPatroni(env: Environment, places: Places): Promise<Found> {
  const folders = [...(env.PATH ?? "").split(delimiter), ...places.patroni];
  for (const path of folders.filter((folder) => folder !== "").map((folder) => join(folder, "patroni"))) {
    if (!(await isExecutable(path))) continue;
    const version = await versionOf(path, /patroni (\S+)/i);
    if (version !== undefined) return { path, version };
  }
  throw new Error("there is no patroni that runs");
}

async function findPostgres(environment: Environment): Promise<Found> {
  const asked = environment.PALISADE_POSTGRES_BIN;
  for (const folder of asked ? [asked] : await systemFolders({ environment, distributionRoot: "/usr/lib/postgresql" })) {
    const there = await Promise.all(ofPostgres.map((program) => isExecutable(join(folder, program))));
    if (!there.every((one) => one)) continue;
    const version = await versionOf(join(folder, "postgres"), / (\d+(?:\.\d+)*)/);
    if (version !== undefined) return { path: folder, version };
  }
  throw new Error(`there is no Postgres with ${ofPostgres.join(", ")}${asked ? ` in PALISADE_POSTGRES_BIN=${asked}` : ""}`);
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Undefined if it does not run. */
async function versionOf(path: string, pattern: RegExp): Promise<string | undefined> {
  const said = await run(path, ["--version"], { ...serverAccount(), cwd: "/", timeout: TIMEOUT_MS }).catch(() => ({ stdout: "" }));
  return pattern.exec(said.stdout)?.[1];
}
