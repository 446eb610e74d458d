// Resources whose row another session held for too long, or whose write took too long or failed its
// batch. Their writes go alone, on connections that are set aside for them, until one passes.

/** Forgetting one costs a batch one short wait. */
const MAX_REMEMBERED = 10_000;

export class SlowRows {
  readonly #names = new Set<string>();

  has(resource: string): boolean {
    return this.#names.size > 0 && this.#names.has(resource);
  }

  mark(resource: string): void {
    this.#names.add(resource);
    const [oldest] = this.#names;
    if (this.#names.size > MAX_REMEMBERED && oldest !== undefined) this.#names.delete(oldest);
  }

  passed(resource: string): void {
    if (this.#names.size > 0) this.#names.delete(resource);
  }
}
