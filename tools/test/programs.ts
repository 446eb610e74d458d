// Small programs that the tests run as real processes. Decides nothing.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The address of a module of tools/, as text that can stand in a program. */
export const moduleOf = (path: string): string => JSON.stringify(new URL(`../${path}`, import.meta.url).href);

export const pathOf = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

export class Program {
  readonly process: ChildProcess;
  output = "";

  constructor(source: string, env: NodeJS.ProcessEnv = process.env) {
    this.process = spawn(process.execPath, ["--input-type=module", "-e", source], { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.process.stdout, this.process.stderr])
      stream?.setEncoding("utf8").on("data", (text) => (this.output += text));
  }

  /** The first match of what it prints; fails with the output if it ends before. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.output);
      if (match !== null) return match;
      if (this.process.exitCode !== null || this.process.signalCode !== null) throw new Error(`ended without ${pattern}:\n${this.output}`);
      await Promise.race([once(this.process.stdout as NodeJS.ReadableStream, "data"), once(this.process, "exit")]);
    }
  }

  async ends(): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "close");
    return { code: this.process.exitCode, signal: this.process.signalCode };
  }
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
