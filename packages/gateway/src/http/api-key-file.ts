// What a file of API keys has to look like.
import { z } from "zod";
import { actions, parseScope } from "./scopes.js";

const scopeText = z.string().refine((text) => parseScope(text) !== undefined, {
  error: `must be one of ${actions.join(", ")}, a colon and a prefix, such as "write:orders/"`,
});
const keyHash = z.string().regex(/^[0-9a-f]{64}$/, { error: "must be the SHA-256 of the key in 64 lower-case hexadecimal digits" });
const instant = z.iso.datetime({ offset: true, error: 'must be a time such as "2027-01-31T00:00:00Z"' });
/**
 * `previous` is the key that the entry had before: while callers change over, both are the same
 * caller, whose idempotency keys and name stay.
 */
export const apiKeyFile = z.strictObject({
  keys: z.array(
    z.strictObject({
      id: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, { error: "must be 1 to 64 letters, digits, dots, dashes or underscores" }),
      sha256: keyHash,
      scopes: z.array(scopeText).min(1, { error: "must hold at least one scope" }),
      expiresAt: instant.optional(),
      previous: z.strictObject({ sha256: keyHash, expiresAt: instant }).optional(),
    }),
  ),
});
