// Runs the program in this process, on streams that stand for a terminal or for pipes.
import { PassThrough } from "node:stream";
import { run } from "#cli/run.js";

export interface Ran {
  readonly exitCode: number;
  readonly output: string;
  readonly errors: string;
}

export interface Place {
  readonly env?: Readonly<Record<string, string>>;
  /** A terminal of so many columns; absent: pipes. */
  readonly columns?: number;
  /** What a person types. */
  readonly typed?: string;
}

export async function palisade(args: readonly string[], { env = {}, columns, typed }: Place = {}): Promise<Ran> {
  const isTTY = columns !== undefined;
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = Object.assign(new PassThrough(), { isTTY, ...(isTTY ? { columns } : {}) });
  const errors = Object.assign(new PassThrough(), { isTTY });
  if (typed !== undefined) input.write(typed);
  const exitCode = await run({ args, env, input, output, errors });
  const said = (stream: PassThrough) => (stream.read() as Buffer | null)?.toString() ?? "";
  return { exitCode, output: said(output), errors: said(errors) };
}
