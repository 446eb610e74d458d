// Round numbers for an axis from zero, and numbers as short as a path needs them. Pure.

export interface Scale {
  /** From 0 to the top, both included. */
  readonly ticks: readonly number[];
  readonly top: number;
}

/** The fewest round steps that reach the highest value; 2 to 4 of them. */
export function scaleTo(highest: number): Scale {
  if (!(highest > 0)) return { ticks: [0, 1], top: 1 };
  const decade = 10 ** Math.floor(Math.log10(highest / 4));
  const step = [1, 2, 2.5, 5, 10, 20, 25, 50].map((factor) => factor * decade).find((size) => size * 4 >= highest) ?? highest;
  const count = Math.max(1, Math.ceil(highest / step - 1e-9));
  const ticks = Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)));
  return { ticks, top: ticks.at(-1) ?? highest };
}

/** One decimal, and none if it is zero. */
export function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}

export function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
