// Starts a program as a child that cannot outlive this process, waits for a line of it, keeps the
// last lines it said, and knows when it has gone. Ports and data belong to the callers.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { type GuardedCommand, killGroup, type LivingChild, noteEnded, noteStarted, orphanGuard } from "./orphans.js";

export interface ChildSpec {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to this process's environment; undefined takes a variable away. LD_* and DYLD_* reach only the command. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
  /** What the child is called in messages and in `livingChildren()`; the command by default. */
  readonly name?: string;
  /** Output is appended to this file, opened by us whatever the child's uid; else to a pipe. */
  readonly logTo?: string;
  /** Called with every line of output; only without `logTo`. */
  readonly onLine?: (line: string) => void;
  /** Called with every message of a Node child; opens a channel that `send` uses the other way. */
  readonly onMessage?: (message: unknown) => void;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const LINES_KEPT = 200;
const BYTES_READ = 16_384;
/** What a process wrote before its end is read a little after it; a grandchild may hold its output open for longer. */
const LAST_WORDS_MS = 50;

/**
 * Starts the child. It dies with this process, whatever kills this process.
 *
 * The kernel's signal is bound to the THREAD that spawns: a child started in a worker thread dies
 * when that worker ends. Start shared servers in the main thread.
 */
export function startChild(spec: ChildSpec): Child {
  return new Child(spec);
}

/** A Node program, with its arguments. */
export function startNode(program: string, args: readonly string[], spec: Omit<ChildSpec, "command" | "args"> = {}): Child {
  return new Child({ ...spec, command: process.execPath, args: [program, ...args] });
}

export class Child implements LivingChild {
  readonly pid: number;
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #logTo: string | undefined;
  readonly #listeners = new Set<(line: string) => void>();
  readonly #gone: Promise<ChildExit>;
  #lines: string[] = [];
  #exit: ChildExit | undefined;

  constructor(spec: ChildSpec) {
    this.name = spec.name ?? spec.command;
    this.#logTo = spec.logTo;
    if (spec.onLine !== undefined) this.#listeners.add(spec.onLine);
    this.#process = spawnGuarded(spec);
    this.#gone = this.#watch(spec.onMessage);
    const pid = this.#process.pid;
    if (pid === undefined) throw new Error(`${this.name} could not be started: ${spec.command} is missing or not executable`);
    this.pid = pid;
    orphanGuard().started(pid);
    noteStarted(this);
  }

  get alive(): boolean {
    return this.#exit === undefined;
  }

  /** How it ended; undefined while it lives. */
  get exit(): ChildExit | undefined {
    return this.#exit;
  }

  /** Waits for the end and the last words, and keeps this process alive meanwhile. */
  async waitForExit(): Promise<ChildExit> {
    if (this.alive) this.#process.ref();
    return this.#gone;
  }

  /**
   * The first line that matches, of the last ones and those to come. Fails with its last words if it
   * ends before; out of time it is killed.
   */
  async says(pattern: RegExp, withinMs = 60_000): Promise<RegExpExecArray> {
    let listener = (_line: string): void => {};
    const said = new Promise<RegExpExecArray>((resolve) => {
      listener = (line) => {
        const match = pattern.exec(line);
        if (match !== null) resolve(match);
      };
    });
    for (const line of this.#lines) listener(line);
    this.#listeners.add(listener);
    const limit = setTimeout(() => killGroup(this.pid), withinMs);
    try {
      const match = await Promise.race([said, this.waitForExit().then(() => undefined)]);
      if (match === undefined) throw new Error(this.howItEnded());
      return match;
    } finally {
      clearTimeout(limit);
      this.#listeners.delete(listener);
    }
  }

  /** Sends a signal to the child alone; says whether it was still there. */
  signal(signal: NodeJS.Signals): boolean {
    return this.alive && this.#process.kill(signal);
  }

  /** A message to a child started with `onMessage`; says whether the child was still there. */
  send(message: object): boolean {
    return this.#process.connected && this.#process.send(message);
  }

  /** SIGKILL to the child and what it forked; resolves when it is gone. */
  async kill(): Promise<ChildExit> {
    if (this.alive) killGroup(this.pid);
    return this.waitForExit();
  }

  /** Asks first, then kills: for servers with something to finish. */
  async stop({ signal = "SIGTERM", graceMs = 5_000 }: { signal?: NodeJS.Signals; graceMs?: number } = {}): Promise<ChildExit> {
    this.signal(signal);
    const limit = setTimeout(() => killGroup(this.pid), graceMs);
    try {
      return await this.waitForExit();
    } finally {
      clearTimeout(limit);
    }
  }

  /** The end of what it wrote, for error messages. */
  lastLines(count = 20): readonly string[] {
    return (this.#logTo === undefined ? this.#lines : lastLinesOfFile(this.#logTo)).slice(-count);
  }

  /** One sentence for an error message: how it ended, and what it said last. */
  howItEnded(): string {
    const end = this.#exit;
    const fate = end === undefined ? "is still running" : end.signal === null ? `exited with ${end.code}` : `was ended by ${end.signal}`;
    const said = this.lastLines();
    return `${this.name} ${fate}; ${said.length === 0 ? "it said nothing" : `its last lines:\n  ${said.join("\n  ")}`}`;
  }

  #watch(onMessage: ChildSpec["onMessage"]): Promise<ChildExit> {
    const child = this.#process;
    for (const stream of [child.stdout, child.stderr]) {
      let unfinished = "";
      stream?.setEncoding("utf8").on("data", (text: string) => {
        const parts = (unfinished + text).split("\n");
        unfinished = (parts.pop() ?? "").slice(-BYTES_READ);
        for (const line of parts) this.#say(line);
      });
      stream?.once("close", () => unfinished !== "" && this.#say(unfinished));
      // An idle pipe must not keep this process alive; the types do not know that it is a socket.
      (stream as unknown as { unref?: () => void } | null)?.unref?.();
    }
    child.unref();
    if (onMessage !== undefined) child.on("message", onMessage).channel?.unref();
    return new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#exit = { code, signal };
        orphanGuard().ended(this.pid);
        noteEnded(this);
        const exit = this.#exit;
        const late = setTimeout(() => resolve(exit), LAST_WORDS_MS);
        child.once("close", () => {
          clearTimeout(late);
          resolve(exit);
        });
      });
      // Without a pid there is nothing to wait for, and the constructor throws; with one, this is a
      // signal that could not be sent.
      child.on("error", ({ message }) => this.#say(message));
    });
  }

  #say(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > LINES_KEPT) this.#lines.shift();
    for (const listener of this.#listeners) listener(line);
  }
}

function lastLinesOfFile(path: string): readonly string[] {
  try {
    const lines = readFileSync(path).subarray(-BYTES_READ).toString("utf8").split("\n");
    return lines.filter((line) => line.trim() !== "");
  } catch (cause) {
    return [`(${path} cannot be read: ${(cause as Error).message})`];
  }
}

function spawnGuarded(spec: ChildSpec): ChildProcess {
  const { command, args } = orphanGuard().wrap(withLoaderVariables(spec));
  const log = spec.logTo === undefined ? undefined : openLog(spec.logTo);
  try {
    return spawn(command, args, {
      env: { ...process.env, ...Object.fromEntries(Object.entries(spec.env ?? {}).filter(([name]) => !isLoaderVariable(name))) },
      stdio: ["ignore", log ?? "pipe", log ?? "pipe", ...(spec.onMessage === undefined ? [] : ["ipc" as const])],
      // Its own session: Ctrl-C at the terminal reaches us, and we end the servers in our order.
      detached: true,
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      ...(spec.uid === undefined ? {} : { uid: spec.uid }),
      ...(spec.gid === undefined ? {} : { gid: spec.gid }),
    });
  } finally {
    if (log !== undefined) closeSync(log);
  }
}

function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  return openSync(path, "a");
}

// setpriv and sh must not load the libraries that were meant for the server, so these variables are
// set by env(1), last in the chain.
const isLoaderVariable = (name: string): boolean => name.startsWith("LD_") || name.startsWith("DYLD_");

function withLoaderVariables({ command, args = [], env = {} }: ChildSpec): GuardedCommand {
  const variables = Object.entries(env).filter(([name, value]) => isLoaderVariable(name) && value !== undefined);
  if (variables.length === 0) return { command, args };
  return { command: "env", args: [...variables.map(([name, value]) => `${name}=${value}`), command, ...args] };
}
