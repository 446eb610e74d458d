// A program as a child that cannot outlive this process: started, waited for by a line that it says,
// asked to stop or killed; its last lines explain its end. Ports and data belong to the callers.
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { killGroup, type LivingChild, noteEnded, noteStarted } from "./orphans.js";

export interface ChildSpec {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to this process's environment; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
  /** What the child is called in messages and in `livingChildren()`; the command by default. */
  readonly name?: string;
  /** Called with every line of output. */
  readonly onLine?: (line: string) => void;
  /** Called with every message of a Node child; opens a channel that `send` uses the other way. */
  readonly onMessage?: (message: unknown) => void;
}

/** Of a Node program. */
export type NodeSpec = Omit<ChildSpec, "command" | "args">;

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const LINES_KEPT = 200;
const LONGEST_LINE = 16_384;
/** What a process wrote before its end is read a little after it; a grandchild may hold its output open for longer. */
const LAST_WORDS_MS = 50;

export function startChild(spec: ChildSpec): Child {
  return new Child(spec);
}

/** A Node program, with its arguments. */
export function startNode(program: string, args: readonly string[], spec: NodeSpec = {}): Child {
  return new Child({ ...spec, command: process.execPath, args: [program, ...args] });
}

export class Child implements LivingChild {
  readonly pid: number;
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #listeners = new Set<(line: string) => void>();
  readonly #gone: Promise<ChildExit>;
  readonly #lines: string[] = [];
  #exit: ChildExit | undefined;

  constructor({ command, args = [], name = command, env, onLine, onMessage, ...place }: ChildSpec) {
    this.name = name;
    if (onLine !== undefined) this.#listeners.add(onLine);
    this.#process = spawn(command, args, {
      ...place,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe", ...(onMessage === undefined ? [] : ["ipc" as const])],
      // Its own session: Ctrl-C at the terminal reaches us, and we end the servers in our order.
      detached: true,
    });
    this.#gone = this.#watch(onMessage);
    const { pid } = this.#process;
    if (pid === undefined) throw new Error(`${name} could not be started: ${command} is missing or not executable`);
    this.pid = pid;
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
    const limit = setTimeout(() => killGroup(this.pid), withinMs); // It also keeps this process alive meanwhile.
    try {
      const match = await Promise.race([said, this.#gone.then(() => undefined)]);
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
    const limit = setTimeout(() => this.alive && killGroup(this.pid), graceMs);
    try {
      return await this.waitForExit();
    } finally {
      clearTimeout(limit);
    }
  }

  /** The end of what it wrote, for error messages. */
  lastLines(count = 40): readonly string[] {
    return this.#lines.slice(-count);
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
        unfinished = (parts.pop() ?? "").slice(-LONGEST_LINE);
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
        const exit = { code, signal };
        this.#exit = exit;
        noteEnded(this);
        // Not before this process has looked at the pipes once more: it may have stood still itself.
        const late = setTimeout(() => setImmediate(resolve, exit), LAST_WORDS_MS);
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

/** Known by its place only: nothing of the gateway is imported here. */
export const gatewayProgram = fileURLToPath(new URL("../../../gateway/dist/main.js", import.meta.url));

export interface Serving extends AsyncDisposable {
  readonly child: Child;
  readonly url: string;
  readonly adminUrl: string;
}

interface ServingSpec extends NodeSpec {
  /** The gateway when absent; else one that says where it listens as the gateway does. */
  readonly program?: string;
  readonly withinMs?: number;
}

/**
 * The gateway on free ports of this machine, when its log says where it listens; it wants credentials
 * only where they are given. Fails with its last words.
 */
export async function startServing({ program = gatewayProgram, withinMs, env, ...spec }: ServingSpec): Promise<Serving> {
  // What was set for other gateways must not reach this one.
  const foreign = Object.keys(process.env).filter((variable) => variable.startsWith("PALISADE_") || variable === "ADMIN_HOST");
  const cleared = Object.fromEntries(foreign.map((variable) => [variable, undefined]));
  const wanted = Object.keys(env ?? {}).some((variable) => /^PALISADE_(?:API_KEYS|JWT)/.test(variable));
  const open = wanted ? {} : { PALISADE_API_KEYS: "none" };
  const own = { ...cleared, ...open, HOST: "127.0.0.1", PORT: "0", ADMIN_PORT: "0", ...env };
  const child = startNode(program, [], { name: "palisade-gateway", ...spec, env: own });
  const [line] = await child.says(/^{.*"msg":"listening".*}$/, withinMs);
  const { url, adminUrl = url } = JSON.parse(line) as { readonly url: string; readonly adminUrl?: string };
  return { child, url, adminUrl, [Symbol.asyncDispose]: async () => void (await child.stop()) };
}

// A child that is asked to do things over its channel and answers, several at once; between its
// answers it may tell something of its own.

type Message<Told> =
  | { readonly number: number; readonly answer: unknown }
  | { readonly number: number; readonly error: { readonly name: string; readonly message: string } }
  | { readonly told: Told };

interface Waiting {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/** The child. An answer that is an error keeps the name of its class; all wait in vain when it ends. */
export class AskedChild<Ask, Told = never> {
  readonly child: Child;
  onTold: (told: Told) => void = () => {};
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  constructor(program: string, spec: Omit<NodeSpec, "onMessage"> = {}) {
    this.child = startNode(program, [], { ...spec, onMessage: (message) => this.#heard(message as Message<Told>) });
    void this.child.waitForExit().then(() => this.#ended());
  }

  get pid(): number {
    return this.child.pid;
  }

  ask<Answer>(ask: Ask): Promise<Answer> {
    this.#last += 1;
    const number = this.#last;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
    if (!this.child.send({ number, ask })) this.#ended();
    return answer as Promise<Answer>;
  }

  async kill(): Promise<void> {
    await this.child.kill();
  }

  #heard(message: Message<Told>): void {
    if ("told" in message) {
      this.onTold(message.told);
      return;
    }
    const waiting = this.#waiting.get(message.number);
    this.#waiting.delete(message.number);
    if ("error" in message) {
      const { name, message: why } = message.error;
      waiting?.reject(Object.assign(new Error(`${this.child.name}: ${why}`), { name }));
    } else waiting?.resolve(message.answer);
  }

  #ended(): void {
    const error = new Error(this.child.howItEnded());
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/**
 * The other side: answers what the parent asks, and ends with it. The result tells the parent
 * something, which has left this process when it resolves.
 */
export function answerParent<Ask, Told = never>(answerTo: (ask: Ask) => Promise<unknown>): (told: Told) => Promise<void> {
  const send = (message: Message<Told>): Promise<void> =>
    new Promise((resolve) => void process.send?.(message, undefined, undefined, () => resolve()));
  process.on("message", async ({ number, ask }: { readonly number: number; readonly ask: Ask }) => {
    try {
      await send({ number, answer: (await answerTo(ask)) ?? null });
    } catch (cause) {
      const error = cause as Error;
      await send({ number, error: { name: error.name, message: error.message } });
    }
  });
  process.on("disconnect", () => process.exit());
  return (told) => send({ told });
}
