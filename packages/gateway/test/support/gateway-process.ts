// The program palisade-gateway as a process of its own, to be signalled, killed and restarted.
import { execFile } from "node:child_process";
import { type Child, type ChildExit, gatewayProgram as program, startServing } from "@palisade/testkit";
import { longTimeoutVariables } from "./long-timeouts.js";

export { program };

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

/** Starts the program and waits until it says where it listens. */
export async function startProgram(env: Readonly<Record<string, string>>, main = program): Promise<GatewayProcess> {
  const lines: string[] = [];
  const { child, url, adminUrl } = await startServing({
    program: main,
    env: { ...longTimeoutVariables, ...env },
    onLine: (line) => lines.push(line),
  });
  const stop = (): Promise<ChildExit> => {
    child.signal("SIGTERM");
    return child.waitForExit();
  };
  return { child, url, adminUrl, lines, stop };
}
