// A server whose every process is stopped by SIGSTOP, as on a suspended machine: connections stay
// open and nothing answers. A stopped backend does not notice that its postmaster has died, so a
// process of its own waits for our end and kills what we had stopped.
import { type ChildProcess, spawn } from "node:child_process";
import { continueTree, stopTree } from "./process-tree.js";

// read ends when the last copy of our end of the pipe closes, however we went.
const KILL_WHEN_ALONE = 'read -r _ || kill -KILL "$@"';

export class Frozen {
  readonly #root: number;
  readonly #keeper: ChildProcess;

  constructor(root: number) {
    this.#root = root;
    const below = stopTree(root);
    this.#keeper = spawn("/bin/sh", ["-c", KILL_WHEN_ALONE, "sh", ...[root, ...below].map(String)], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true, // Ctrl-C at the terminal must not reach it before us.
    });
    this.#keeper.on("error", (cause) => process.emitWarning(`nothing ends the paused server with this process: ${root}: ${cause.message}`));
    this.#keeper.unref();
    (this.#keeper.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  }

  thaw(): void {
    continueTree(this.#root);
    this.forget();
  }

  /** Lifts the watch, once nothing is left to watch over. */
  forget(): void {
    this.#keeper.kill("SIGKILL");
  }
}
