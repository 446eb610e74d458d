// Writes the settings of a local server into its data folder, as a file, so that a test can still
// change them with ALTER SYSTEM. These are the settings that all local servers have in common; the
// address is given at every start.
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { HostOptions } from "./provider.js";

/** Only the flushes differ between durable and not; what a client sees of a commit is the same. */
export function settingsOf({ durable, settings }: HostOptions): Record<string, string> {
  const flushes = durable ? "on" : "off";
  return {
    fsync: flushes,
    full_page_writes: flushes,
    max_connections: "200",
    // In the data folder, where it vanishes with it; the default leaves files in /dev/shm after a
    // SIGKILL.
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
