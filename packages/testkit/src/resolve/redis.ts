// Finds the Redis server this machine runs the fleets with: the named one, one on PATH, or one
// fetched from the distribution's packages without root. A lesser one is never taken in silence:
// what was tried goes into the error.
import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { fetchRedisPackages } from "./redis-packages.js";

const run = promisify(execFile);
const OLDEST_MAJOR = 7;

export interface RedisBinary {
  readonly binary: string;
  /** For LD_LIBRARY_PATH, when the server brings its own libraries; may be empty. */
  readonly libraryPath?: string;
  readonly product: "Redis" | "Valkey";
  readonly version: string;
  /** Where it was found, in words. */
  readonly from: string;
}

/** `outdated`: a server was there, and its version was the reason against it. */
type Found = RedisBinary | { readonly missing: string; readonly outdated?: true };

let resolved: Promise<RedisBinary> | undefined;

/** The server to use; looked for once per process. */
export function resolveRedis(): Promise<RedisBinary> {
  resolved ??= findRedis(process.env);
  return resolved;
}

/** One line for a human: what runs, and where it comes from. */
export function describeRedis({ product, version, binary, from }: RedisBinary): string {
  return `${product} ${version} (${binary}, ${from})`;
}

/** As `resolveRedis`, for the given environment, and looked for anew. */
export async function findRedis(env: Readonly<Record<string, string | undefined>>): Promise<RedisBinary> {
  const wanted = env.REDIS_SERVER_BIN;
  if (wanted !== undefined && wanted !== "") {
    const found = await inspect({ binary: wanted, from: "REDIS_SERVER_BIN" });
    if ("missing" in found) throw new Error(`REDIS_SERVER_BIN names ${wanted}, but ${found.missing}`);
    return found;
  }
  const tried = ["REDIS_SERVER_BIN: not set"];
  const onThisPath = await onPath(env.PATH ?? "");
  if (!("missing" in onThisPath)) return onThisPath;
  const fetched = await fromPackages(env);
  if (!("missing" in fetched)) return fetched;
  tried.push(onThisPath.missing, fetched.missing);
  throw new Error(noRedis(tried, fetched.outdated === true));
}

/** Where the distribution's own Redis is too old, installing it would change nothing. */
function noRedis(tried: readonly string[], packagesAreOutdated: boolean): string {
  const install =
    "  sudo apt-get install redis-server    (macOS: brew install redis; Fedora: sudo dnf install valkey; Alpine: apk add redis)";
  return [
    "no Redis server can be had on this machine. Tried:",
    ...tried.map((attempt) => `  - ${attempt}`),
    "Any one of these helps:",
    ...(packagesAreOutdated ? [] : [install]),
    `  REDIS_SERVER_BIN=/path/to/redis-server    (Redis ${OLDEST_MAJOR}.0 or newer, or Valkey)`,
    "  PALISADE_TEST_PROVIDER=docker    (with a container engine running)",
  ].join("\n");
}

async function onPath(path: string): Promise<Found> {
  const complaints: string[] = [];
  for (const name of ["redis-server", "valkey-server"]) {
    for (const folder of path.split(delimiter).filter((entry) => entry !== "")) {
      const binary = join(folder, name);
      if (!(await isExecutable(binary))) continue;
      const found = await inspect({ binary, from: "on PATH" });
      if (!("missing" in found)) return found;
      complaints.push(found.missing);
    }
  }
  return { missing: `PATH: ${complaints.length === 0 ? "neither redis-server nor valkey-server is there" : complaints.join("; ")}` };
}

async function fromPackages(env: Readonly<Record<string, string | undefined>>): Promise<Found> {
  try {
    const fetched = await fetchRedisPackages(env);
    const found = await inspect({ ...fetched, from: "packages of this distribution, unpacked without root" });
    if (!("missing" in found)) return found;
    if (found.outdated) return { missing: `packages without root: ${found.missing}`, outdated: true };
    return { missing: `packages without root: ${found.missing} (delete it to have it fetched again)` };
  } catch (cause) {
    return { missing: `packages without root: ${(cause as Error).message}` };
  }
}

/** Asks the server for its version: the proof that it runs here. */
async function inspect(candidate: Pick<RedisBinary, "binary" | "libraryPath" | "from">): Promise<Found> {
  const { binary, libraryPath } = candidate;
  const env = libraryPath ? { ...process.env, LD_LIBRARY_PATH: libraryPath } : process.env;
  let answer: string;
  try {
    answer = (await run(binary, ["--version"], { env, timeout: 10_000 })).stdout;
  } catch (cause) {
    return { missing: `${binary} does not run: ${(cause as Error).message.trim()}` };
  }
  const [, product, version] = /(Redis|Valkey) server v=(\S+)/.exec(answer) ?? [];
  if (product === undefined || version === undefined) return { missing: `${binary} does not say which Redis it is: ${answer.trim()}` };
  if (Number.parseInt(version, 10) < OLDEST_MAJOR)
    return { missing: `${binary} is ${product} ${version}, older than ${OLDEST_MAJOR}.0`, outdated: true };
  return { ...candidate, product: product as RedisBinary["product"], version };
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
