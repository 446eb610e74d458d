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
