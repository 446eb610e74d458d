// The program palisade-gateway as a process of its own, to be signalled, killed and restarted.
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Child, type ChildExit, startChild } from "@palisade/testkit";
import { longTimeoutVariables } from "./long-timeouts.js";

export const program = join(createRequire(import.meta.url).resolve("@palisade/gateway/package.json"), "..", "dist", "main.js");

export interface ProgramResult {
  readonly code: number | string | null | undefined;
  readonly out: string;
  readonly err: string;
}

/** Runs a command of the program to its end. */
export function runProgram(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ProgramResult> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { env: { ...process.env, ...env } }, (error, out, err) =>
      resolve({ code: error === null ? 0 : error.code, out, err }),
    );
  });
}

export interface GatewayProcess {
  readonly child: Child;
  readonly url: string;
  readonly adminUrl: string;
  /** Every line of the log so far. */
  readonly lines: readonly string[];
  /** Sends SIGTERM and waits for the exit, without a limit. */
  stop(): Promise<ChildExit>;
}

interface LogLine {
  readonly msg?: string;
  readonly url?: string;
  readonly adminUrl?: string;
}

/** Starts the program and waits until it says where it listens. */
export async function startProgram(env: Readonly<Record<string, string>>, main = program): Promise<GatewayProcess> {
  const lines: string[] = [];
  let heard = (_entry: LogLine): void => undefined;
  const listening = new Promise<LogLine>((resolve) => {
    heard = resolve;
  });
  const child = startChild({
    // These are about the tests' servers; the program would warn that it does not know them.
    command: "env",
    args: ["-u", "PALISADE_TEST_PROVIDER", "-u", "PALISADE_TEST_CITUS", process.execPath, main],
    env: { PORT: "0", ADMIN_PORT: "0", ...longTimeoutVariables, ...env },
    name: "palisade-gateway",
    onLine: (line) => {
      lines.push(line);
      const entry = parse(line);
      if (entry?.msg === "listening") heard(entry);
    },
  });
  const ended = child.waitForExit().then((): LogLine => ({}));
  const { url, adminUrl } = await Promise.race([listening, ended]);
  if (url === undefined || adminUrl === undefined) throw new Error(child.howItEnded());
  const stop = (): Promise<ChildExit> => {
    child.signal("SIGTERM");
    return child.waitForExit();
  };
  return { child, url, adminUrl, lines, stop };
}

function parse(line: string): LogLine | undefined {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return undefined;
  }
}
