// Temporary folders that go with this process, or after a kill with the next one that starts.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolderAtExit } from "./living-children.js";
import { isRunning, thisProcess } from "./process-state.js";

// The host is part of the name, because two containers may share /tmp and not their process ids.
const prefix = `palisade-${hostname()}-`;
const swept = new Set<string>();

/** A new private folder below `root`, removed at the end of this process if not before. */
export function scratchFolder(label: string, root = tmpdir()): string {
  sweepOnce(root);
  const folder = mkdtempSync(join(root, `${prefix}${thisProcess}-${label}-`));
  removeFolderAtExit(folder);
  return folder;
}

function sweepOnce(root: string): void {
  if (swept.has(root)) return;
  swept.add(root);
  for (const name of readdirSync(root)) {
    if (!name.startsWith(prefix) || ownerLives(name.slice(prefix.length))) continue;
    try {
      rmSync(join(root, name), { recursive: true, force: true });
    } catch (cause) {
      // Another user's folder, left to that user's next run; or another process sweeps just now.
      if (!["EACCES", "EPERM", "ENOENT", "ENOTEMPTY"].includes((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
    }
  }
}

function ownerLives(rest: string): boolean {
  const [, owner] = /^(\d+\.\d*)-/.exec(rest) ?? [];
  return owner === undefined || isRunning(owner); // Without an owner it is no folder of ours.
}
