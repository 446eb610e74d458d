// API keys as callers and operators see them: a random text for the one, its hash for the other.
// The types name no library, because the package's own types do not either.
import { createHash, randomBytes } from "node:crypto";

/** What a file of API keys holds; `http/auth.ts` checks it. */
export interface ApiKeyFile {
  /** One entry per caller. */
  readonly keys: readonly ApiKeyEntry[];
}

/** One caller. */
export interface ApiKeyEntry {
  /** Its name in logs and as the writer of a document. */
  readonly id: string;
  /** The hash of its key. */
  readonly sha256: string;
  /** What it may do: "write:orders/". */
  readonly scopes: readonly string[];
  /** When the key ends; never when absent. */
  readonly expiresAt?: string | undefined;
  /** The key before this one, while callers change over. */
  readonly previous?: { readonly sha256: string; readonly expiresAt: string } | undefined;
}

const API_KEY_PREFIX = "palisade_";

/** A key and its hash. */
export interface NewApiKey {
  /** For the caller; it is stored nowhere. */
  readonly key: string;
  /** For the key file. */
  readonly sha256: string;
}

/** A new random key. */
export function makeApiKey(): NewApiKey {
  const key = API_KEY_PREFIX + randomBytes(32).toString("base64url");
  return { key, sha256: hashApiKey(key) };
}

/** The SHA-256 of a key in hex, as the key file has it. */
export function hashApiKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}
