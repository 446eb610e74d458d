// Temporary folders that go away with this process; what a killed process left behind goes with the next one that starts.
// It must not touch a folder whose process may still live.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolderAtExit } from "./living-children.js";

// The host is part of the name, because two containers may share /tmp and not their process ids.
const prefix = `palisade-${hostname()}-`;
const swept = new Set<string>();

/** A new private folder below `root`; it is removed at the end of this process, if its owner has not removed it before. */
export function scratchFolder(label: string, root = tmpdir()): string {
  sweepOnce(root);
  const folder = mkdtempSync(join(root, `${prefix}${process.pid}-${label}-`));
  removeFolderAtExit(folder);
  return folder;
}

function sweepOnce(root: string): void {
  if (swept.has(root)) return;
  swept.add(root);
  for (const name of readdirSync(root)) {
    const pid = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : Number.NaN;
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    try {
      rmSync(join(root, name), { recursive: true, force: true });
    } catch (cause) {
      // Another user's, theirs to sweep; or somebody else sweeps at this moment.
      if (!["EACCES", "EPERM", "ENOENT", "ENOTEMPTY"].includes((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === "EPERM";
  }
}
