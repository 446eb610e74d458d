// Small programs that the tests run as real processes, and that end with their tests.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** The address of a module of tools/, as text that can stand in a program. */
export const moduleOf = (path: string): string => JSON.stringify(addressOf(path));

export const addressOf = (path: string): string => new URL(`../${path}`, import.meta.url).href;

export const pathOf = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

export class Program {
  readonly process: ChildProcess;
  output = "";
  /** It has ended, and all that it printed has been read, which may come after its end. */
  #isOver = false;
  readonly #over: Promise<void>;

  constructor(source: string, env: NodeJS.ProcessEnv = process.env) {
    this.process = spawn(process.execPath, ["--input-type=module", "-e", source], { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.process.stdout, this.process.stderr])
      stream?.setEncoding("utf8").on("data", (text) => (this.output += text));
    this.#over = once(this.process, "close").then(() => {
      this.#isOver = true;
    });
    onTestFinished(() => this.#end());
  }

  /** The first match of what it prints; fails with the output if it ends before. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.output);
      if (match !== null) return match;
      if (this.#isOver) throw new Error(`ended without ${pattern}:\n${this.output}`);
      await Promise.race([once(this.process.stdout as NodeJS.ReadableStream, "data"), this.#over]);
    }
  }

  async ends(): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }> {
    await this.#over;
    return { code: this.process.exitCode, signal: this.process.signalCode };
  }

  /** With it end the children that it guards; another holder of its output is not awaited. */
  #end(): void {
    this.process.kill("SIGKILL");
    this.process.stdout?.destroy();
    this.process.stderr?.destroy();
  }
}

/** A process that a program has left to itself. */
export function endsWithTest(pid: number): number {
  onTestFinished(() => {
    if (runs(pid)) process.kill(pid, "SIGKILL");
  });
  return pid;
}

/** Running, as opposed to gone or waiting to be buried. */
export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
