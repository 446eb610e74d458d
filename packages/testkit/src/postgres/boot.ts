// Starts one postmaster on an existing data folder and waits until it accepts connections, by what
// it says and not by trying.
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, startChild } from "../process/child.js";
import type { PostgresInstallation } from "../resolve/postgres.js";
import type { HostOptions } from "./provider.js";

interface BootSpec {
  readonly installation: PostgresInstallation;
  readonly data: string;
  readonly port: number;
}

/** Another process sits on the port. */
export class PortTaken extends Error {}

const BOOT_TIMEOUT_MS = 30_000;

/** The address must stay, so it is no setting in a file that ALTER SYSTEM could change. */
function address(port: number): string[] {
  return ["-c", "listen_addresses=127.0.0.1", "-c", `port=${port}`, "-c", "unix_socket_directories="];
}

/** The running postmaster. Throws PortTaken, or what the server said before it gave up. */
export async function boot(spec: BootSpec): Promise<Child> {
  const { installation, data } = spec;
  let announce = (): void => {};
  const ready = new Promise<"ready">((resolve) => {
    announce = () => resolve("ready");
  });
  const postmaster = startChild({
    command: join(installation.binFolder, "postgres"),
    args: ["-D", data, ...address(spec.port)],
    cwd: data,
    name: `postgres:${spec.port}`,
    ...installation.account,
    onLine: (line) => {
      if (line.includes("database system is ready to accept")) announce();
    },
  });
  const tooLong = new AbortController();
  const outcome = await Promise.race([
    ready,
    postmaster.waitForExit().then(() => "ended" as const),
    sleep(BOOT_TIMEOUT_MS, "timeout" as const, { signal: tooLong.signal }),
  ]);
  tooLong.abort();
  if (outcome === "ready") return postmaster;
  if (outcome === "timeout") await postmaster.kill();
  const said = postmaster.howItEnded();
  if (said.includes("Address already in use")) throw new PortTaken(`port ${spec.port} of 127.0.0.1 is taken: ${said}`);
  throw new Error(
    outcome === "timeout" ? `Postgres was not ready after ${BOOT_TIMEOUT_MS} ms: ${said}` : `Postgres did not start: ${said}`,
  );
}

// Writes the settings of a local server into its data folder, as a file, so that a test can still
// change them with ALTER SYSTEM. These are the settings that all local servers have in common; the
// address is given at every start.
/** Only the flushes differ between durable and not; what a client sees of a commit is the same. */
export function settingsOf({ durable, settings }: HostOptions): Record<string, string> {
  const flushes = durable ? "on" : "off";
  return {
    fsync: flushes,
    full_page_writes: flushes,
    max_connections: "200",
    // In the data folder, and gone with it; the default leaves files in /dev/shm after a SIGKILL.
    dynamic_shared_memory_type: "mmap",
    // Readiness and failures of the server; errors of clients are the clients' business.
    log_min_messages: "log",
    log_checkpoints: "off",
    ...settings,
  };
}

export async function configure(data: string, options: HostOptions): Promise<void> {
  await appendSettings(data, settingsOf(options));
}

/** The last line about a setting counts. */
export async function appendSettings(data: string, settings: Readonly<Record<string, string>>): Promise<void> {
  await appendFile(join(data, "postgresql.conf"), `\n${settingsLines(settings)}`);
}

/** As lines of postgresql.conf. */
export function settingsLines(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`)
    .join("");
}
