// A folder for all that a task puts below TMPDIR, removed at its end: tests that are interrupted
// are killed in the middle and cannot remove theirs, nor can vitest. Named after its process like
// the folders of the testkit, so that a later run finds what a killed one has left.
import { accessSync, chmodSync, constants, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { diskFull } from "./explain.mjs";
import { birthOf } from "./process-table.mjs";
import { Refusal } from "./refusal.mjs";

const prefix = `palisade-${hostname()}-`;
/** Servers keep their data in memory where there is some. */
const roots = () => [tmpdir(), "/var/tmp", "/dev/shm"];

/**
 * @template T
 * @param {(env: Record<string, string | undefined>) => Promise<T>} work given the environment of its programs
 * @returns {Promise<T>}
 */
export async function inScratchFolder(work) {
  sweep();
  const folder = newFolder();
  try {
    return await work({ ...process.env, TMPDIR: folder });
  } finally {
    // A killed server may take a moment to be gone, and write a last file meanwhile.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    sweep();
  }
}

function newFolder() {
  try {
    // Tests put programs there, which a /tmp that is mounted noexec does not run.
    const root = letsProgramsRun(tmpdir()) || !existsSync("/var/tmp") ? tmpdir() : "/var/tmp";
    const folder = mkdtempSync(join(root, `${prefix}${process.pid}.${birthOf(process.pid)}-run-`));
    chmodSync(folder, 0o711); // The account that runs the servers of root must be able to enter.
    return folder;
  } catch (error) {
    const code = /** @type {NodeJS.ErrnoException} */ (error).code ?? "";
    throw diskFull(code) ?? new Refusal(`${tmpdir()} cannot be written (${code}). Set TMPDIR to a folder that can.`);
  }
}

/** @param {string} root */
function letsProgramsRun(root) {
  const folder = mkdtempSync(join(root, ".palisade-probe-"));
  try {
    writeFileSync(join(folder, "program"), "", { mode: 0o700 });
    accessSync(join(folder, "program"), constants.X_OK);
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EACCES") throw error;
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Removes the folders of processes that are gone. */
function sweep() {
  for (const root of roots()) {
    for (const name of entriesOf(root)) {
      const [, pid, birth] = name.startsWith(prefix) ? (/^(\d+)\.(\d+)-/.exec(name.slice(prefix.length)) ?? []) : [];
      if (birth === undefined || birthOf(Number(pid)) === birth) continue;
      try {
        rmSync(join(root, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
      } catch {
        // Another user's, which that user's next run sweeps.
      }
    }
  }
}

/** @param {string} root */
function entriesOf(root) {
  try {
    return readdirSync(root);
  } catch {
    return []; // There is none.
  }
}
