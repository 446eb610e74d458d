// How one setting is described.

export interface Setting {
  readonly env: string;
  /** Of zod; the types of the package name only what is used of it. */
  readonly schema: { safeParse(given: unknown): { readonly success: boolean } };
  /** Completes the sentence "NAME must be …". */
  readonly mustBe: string;
  readonly help: string;
  /**
   * In place of `mustBe`: what is wrong with a value that the schema refuses, without showing it.
   */
  readonly fault?: (given: unknown) => string | undefined;
  readonly fallback?: unknown;
  /** The default where another part of the gateway decides it. */
  readonly otherwise?: unknown;
  /** Its value may hold a password or key and is never shown. */
  readonly secret?: boolean;
  /**
   * How the text of an environment variable becomes a value for the schema; as it is when absent.
   */
  readonly read?: (text: string) => unknown;
}

/** The name that was meant, where one of these is misspelt. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  return [...known].find((other) => distance(name, other) <= Math.min(2, name.length / 2));
}

/** Edit distance: how many letters must be inserted, deleted or changed. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const changed = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
