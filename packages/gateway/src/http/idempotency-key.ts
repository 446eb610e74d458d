// The Idempotency-Key header: its syntax, and the fingerprint that tells a retry from another request under the same key. What was done before is the store's knowledge.
import { createHash } from "node:crypto";
import type { Idempotency } from "../fence/verdict.js";
import { Problem } from "./problem.js";
import type { Principal } from "./scopes.js";

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

export function parseIdempotencyKey(field: string | undefined): string | undefined | Problem {
  if (field === undefined || IDEMPOTENCY_KEY.test(field)) return field;
  return new Problem("idempotency_key_malformed", "The Idempotency-Key header must be sent once, with 1 to 255 visible ASCII characters.");
}

/**
 * Keys belong to the caller who chose them. The token is part of the fingerprint: a retry under a newer lease is another request, because answering it with the old
 * success would report a fence that was never raised (G1).
 */
export function idempotencyOf(principal: Principal, key: string, parts: readonly (string | number | null | undefined)[]): Idempotency {
  return { key: digest([principal.id, key]), fingerprint: digest(parts) };
}

function digest(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}
