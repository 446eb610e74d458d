// What the callers share, such as the bytes of bodies that the process may hold at a time, so that
// neither one of them nor all together exhaust it.

/**
 * The more a caller holds, the more must be left for the others: twice what is left is the most that
 * one may hold, so that one alone gets two thirds, and of any number each gets the same and something
 * is left. For what is small the most is twice as much: a caller that fills its share with large
 * ones still has room for small ones.
 */
export class Shares {
  readonly #limit: number;
  #held = 0;
  readonly #heldBy = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get held(): number {
    return this.#held;
  }

  hasRoom(caller: string, amount: number, isSmall: boolean): boolean {
    const left = this.#limit - this.#held - amount;
    const held = (this.#heldBy.get(caller) ?? 0) + amount;
    return left >= 0 && held <= left * (isSmall ? 4 : 2);
  }

  tryTake(caller: string, amount: number, isSmall: boolean): boolean {
    if (!this.hasRoom(caller, amount, isSmall)) return false;
    this.take(caller, amount);
    return true;
  }

  /** Also where there is no room: it is there already. */
  take(caller: string, amount: number): void {
    if (amount === 0) return;
    const held = (this.#heldBy.get(caller) ?? 0) + amount;
    this.#held += amount;
    if (held === 0) this.#heldBy.delete(caller);
    else this.#heldBy.set(caller, held);
  }

  give(caller: string, amount: number): void {
    this.take(caller, -amount);
  }
}
