// A child that is asked to do things over its channel and answers, several at once; between its
// answers it may tell something of its own.
import { type Child, type NodeSpec, startNode } from "./program.js";

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
