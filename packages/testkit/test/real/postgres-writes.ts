// Writes 1, 2, 3 … to the table `writes` until the connection breaks, for tests of crashes.
import type pg from "pg";

export interface Writing {
  /** When so many were acknowledged. */
  readonly enough: Promise<void>;
  /** When the connection broke: those that Postgres acknowledged. */
  readonly acknowledged: Promise<number[]>;
}

export function writeUntilCut(client: pg.Client, count: number): Writing {
  const numbers: number[] = [];
  let onEnough = (): void => {};
  const enough = new Promise<void>((resolve) => {
    onEnough = resolve;
  });
  const write = async (): Promise<number[]> => {
    for (let number = 1; ; number += 1) {
      try {
        await client.query("insert into writes values ($1)", [number]);
      } catch {
        return numbers; // Cut: this one may be stored or not.
      }
      numbers.push(number);
      if (number === count) onEnough();
    }
  };
  return { enough, acknowledged: write() };
}
