// Starts one postmaster on an existing data folder and waits until it accepts connections, by what it says and not by trying. It decides the settings that
// every local server has in common. It must not create, copy or remove data.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, startChild } from "../process/child.js";
import type { PostgresInstallation } from "../resolve/postgres.js";
import type { HostOptions } from "./host.js";

export interface BootSpec extends HostOptions {
  readonly installation: PostgresInstallation;
  readonly data: string;
  readonly port: number;
}

/** Another process sits on the port. */
export class PortTaken extends Error {}

const bootTimeoutMs = 30_000;

/** Only the flushes differ between durable and not; what a client sees of a commit is the same. */
function settingsOf({ port, durable, settings }: BootSpec): Record<string, string> {
  const flushes = durable ? "on" : "off";
  return {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
    fsync: flushes,
    full_page_writes: flushes,
    max_connections: "200",
    dynamic_shared_memory_type: "mmap", // In the data folder, where it vanishes with it; the default leaves files in /dev/shm after a SIGKILL.
    log_min_messages: "log", // Readiness and failures of the server; errors of clients are the clients' business.
    log_checkpoints: "off",
    ...settings,
  };
}

/** Resolves with the running postmaster. Throws PortTaken, or what the server said before it gave up. */
export async function boot(spec: BootSpec): Promise<Child> {
  const { installation, data } = spec;
  let announce = (): void => {};
  const ready = new Promise<"ready">((resolve) => {
    announce = () => resolve("ready");
  });
  const postmaster = startChild({
    command: join(installation.binFolder, "postgres"),
    args: ["-D", data, ...Object.entries(settingsOf(spec)).flatMap(([name, value]) => ["-c", `${name}=${value}`])],
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
    sleep(bootTimeoutMs, "timeout" as const, { signal: tooLong.signal }),
  ]);
  tooLong.abort();
  if (outcome === "ready") return postmaster;
  if (outcome === "timeout") await postmaster.kill();
  const said = postmaster.obituary();
  if (said.includes("Address already in use")) throw new PortTaken(`port ${spec.port} of 127.0.0.1 is taken: ${said}`);
  throw new Error(outcome === "timeout" ? `Postgres was not ready after ${bootTimeoutMs} ms: ${said}` : `Postgres did not start: ${said}`);
}
