// The part of the table of settings that says who may call.
import { z } from "zod";
import { apiKeyFile } from "../http/api-key-file.js";
import type { Setting } from "./setting.js";
import { list, number, parseJson, secret, shortText, urlOf } from "./setting-kinds.js";
import type { CredentialSettings } from "./setting-values.js";

const sharedAlgorithms = ["HS256", "HS384", "HS512"];
const publicKeyAlgorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"];

export const credentialSettings: { readonly [K in keyof CredentialSettings]: Setting } = {
  apiKeysFile: {
    env: "PALISADE_API_KEYS_FILE",
    schema: shortText,
    mustBe: "the path of a JSON file",
    help: "API keys, hashed, with their scopes; palisade-gateway keygen makes entries.",
  },
  apiKeys: secret({
    env: "PALISADE_API_KEYS",
    schema: apiKeyFile.shape.keys,
    mustBe: 'a JSON array of keys such as [{"id":"worker","sha256":"…","scopes":["write:orders/"]}]',
    help: "The same entries as JSON text, in place of a file.",
    read: parseJson,
  }),
  jwtSecret: secret({
    env: "PALISADE_JWT_SECRET",
    schema: z.string().min(32),
    mustBe: "at least 32 characters",
    help: "Shared secret for JWTs.",
  }),
  jwtJwksUrl: {
    env: "PALISADE_JWT_JWKS_URL",
    schema: urlOf("http:", "https:"),
    mustBe: "an http:// or https:// URL",
    help: "Where the public keys for JWTs are fetched.",
  },
  jwtJwksMaxAgeMs: number({
    env: "PALISADE_JWT_JWKS_MAX_AGE_MS",
    range: [1_000, 86_400_000],
    otherwise: 300_000,
    help: "A public key that was withdrawn stops counting after at most this time; the keys are fetched again before.",
  }),
  jwtAudience: {
    env: "PALISADE_JWT_AUDIENCE",
    schema: shortText,
    mustBe: "1 to 255 characters",
    help: "The aud claim a JWT must carry; needed with either of the two above.",
  },
  jwtIssuer: {
    env: "PALISADE_JWT_ISSUER",
    schema: shortText,
    mustBe: "1 to 255 characters",
    help: "The iss claim a JWT must carry, where set.",
  },
  jwtAlgorithms: list({
    env: "PALISADE_JWT_ALGORITHMS",
    item: z.enum([...sharedAlgorithms, ...publicKeyAlgorithms]),
    mustBe: `a comma-separated list out of ${[...sharedAlgorithms, ...publicKeyAlgorithms].join(", ")}`,
    help: "Allowed algorithms; HS256 with a secret and RS256, ES256, EdDSA with public keys when absent.",
  }),
};
