// Chance that can be repeated: every actor of a run draws from a stream of its own, made of the
// run's seed and the actor's name. The same seed draws the same; when it takes effect differs,
// because processes and networks have their own pace.

export interface Chance {
  /** 0 ≤ x < 1. */
  next(): number;
  /** A whole number, both ends included. */
  between(least: number, most: number): number;
  /** Whether something of this probability happens. */
  happens(probability: number): boolean;
  one<T>(items: readonly T[]): T;
  /** So many different ones, or all if there are fewer. */
  some<T>(items: readonly T[], count: number): T[];
  weighted<T>(items: readonly T[], weightOf: (item: T) => number): T;
}

export function chanceOf(seed: string, actor: string): Chance {
  let state = hash(`${seed}/${actor}`);
  const next = (): number => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  const some = <T>(items: readonly T[], count: number): T[] => {
    const left = [...items];
    return Array.from({ length: Math.min(count, left.length) }, () => left.splice(between(0, left.length - 1), 1)).flat();
  };
  const one = <T>(items: readonly T[]): T => {
    const [chosen] = some(items, 1);
    if (chosen === undefined) throw new RangeError("nothing to choose from");
    return chosen;
  };
  const weighted = <T>(items: readonly T[], weightOf: (item: T) => number): T => {
    let left = next() * items.reduce((sum, item) => sum + weightOf(item), 0);
    for (const item of items) {
      left -= weightOf(item);
      if (left < 0) return item;
    }
    return one(items);
  };
  return { next, between, happens: (probability) => next() < probability, one, some, weighted };
}

// FNV-1a: any text to 32 bits.
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state;
}
