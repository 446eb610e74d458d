// Starts one postmaster on an existing data folder and waits until it accepts connections, by what
// it says and not by trying.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, startChild } from "../process/child.js";
import type { PostgresInstallation } from "../resolve/postgres.js";

export interface BootSpec {
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
