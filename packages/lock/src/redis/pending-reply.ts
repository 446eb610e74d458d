// One question to one node, and who is to be told the answer. Every lease asks ten of them, so this is one object and no promise.
import type { Ballot } from "../protocol/ballot.js";
import type { Answer } from "../protocol/node.js";
import type { RequestKind } from "./requests.js";

export class Asked implements Answer<Ballot> {
  readonly kind: RequestKind<unknown, Ballot>;
  readonly question: unknown;
  #answer: Ballot | undefined;
  #told: ((ballot: Ballot) => void) | undefined;

  constructor(kind: RequestKind<unknown, Ballot>, question: unknown) {
    this.kind = kind;
    this.question = question;
  }

  // biome-ignore lint/suspicious/noThenProperty: to be awaited is what it is for.
  then(told: (ballot: Ballot) => void): void {
    if (this.#answer !== undefined) void Promise.resolve(this.#answer).then(told);
    else if (this.#told === undefined) this.#told = told;
    else throw new Error("an answer is told once");
  }

  /** Tells at once, within this call. */
  resolve(ballot: Ballot): void {
    this.#answer = ballot;
    this.#told?.(ballot);
  }
}
