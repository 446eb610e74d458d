// A process that is asked to do things over its channel: every library, and every load on a server,
// runs in processes of its own, whose processor time is theirs alone.
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "@palisade/testkit";

interface Asked<Ask> {
  readonly number: number;
  readonly ask: Ask;
}

type Told = { readonly number: number } & ({ readonly answer: unknown } | { readonly error: string });

interface Waiting {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

export class ClientProcess<Ask extends object> {
  readonly #child: Child;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  constructor(program: URL, options: { readonly name: string; readonly nodeOptions?: readonly string[] }) {
    this.#child = startChild({
      name: options.name,
      command: process.execPath,
      args: [...(options.nodeOptions ?? []), fileURLToPath(program)],
      onMessage: (message) => this.#told(message as Told),
    });
    void this.#child.waitForExit().then(() => this.#ended());
  }

  get pid(): number {
    return this.#child.pid;
  }

  async ask<Answer>(ask: Ask): Promise<Answer> {
    this.#last += 1;
    const number = this.#last;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
    if (!this.#child.send({ number, ask } satisfies Asked<Ask>)) this.#ended();
    return (await answer) as Answer;
  }

  async stop(): Promise<void> {
    await this.#child.kill();
  }

  #told(message: Told): void {
    const waiting = this.#waiting.get(message.number);
    this.#waiting.delete(message.number);
    if ("error" in message) waiting?.reject(new Error(`${this.#child.name}: ${message.error}`));
    else waiting?.resolve(message.answer);
  }

  #ended(): void {
    const error = new Error(this.#child.howItEnded());
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** The other side: answers what the parent asks, several at once. */
export function answerParent<Ask>(answerTo: (ask: Ask) => Promise<unknown>): void {
  process.on("message", async ({ number, ask }: Asked<Ask>) => {
    try {
      process.send?.({ number, answer: (await answerTo(ask)) ?? null } satisfies Told);
    } catch (error) {
      process.send?.({ number, error: (error as Error).stack ?? String(error) } satisfies Told);
    }
  });
  process.on("disconnect", () => process.exit());
}

/** Microseconds on the monotonic clock that all processes of a machine share. */
export function nowUs(): number {
  return Number(process.hrtime.bigint()) / 1_000;
}
