// Counts what is still under way in one locker, so that closing it can wait for the last release to leave. Nothing else may depend on it.

export class Work {
  #underWay = 0;
  #idle: (() => void)[] = [];

  begin(): void {
    this.#underWay++;
  }

  end(): void {
    this.#underWay--;
    if (this.#underWay > 0) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    return this.#underWay === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }
}
