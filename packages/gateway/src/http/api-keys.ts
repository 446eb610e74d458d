// API keys: how one is made, how it is stored (only as SHA-256), and whose it is. Must not keep, log or return a key once it has been hashed.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { type Principal, parseScope } from "./scopes.js";

export const API_KEY_PREFIX = "palisade_";
// 256 random bits in base64url. A key made elsewhere is taken too if it is long enough to hold 128 bits; a short one could be found from its hash.
const MIN_KEY_LENGTH = 22;
const KEY_SHAPE = /^[A-Za-z0-9\-._~+/]+=*$/;

const scopeText = z.string().refine((text) => parseScope(text) !== undefined, {
  error: 'must be read, write, seal or admin, a colon and a prefix, such as "write:orders/"',
});
export const apiKeyFile = z.strictObject({
  keys: z.array(
    z.strictObject({
      id: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, { error: "must be 1 to 64 letters, digits, dots, dashes or underscores" }),
      sha256: z.string().regex(/^[0-9a-f]{64}$/, { error: "must be the SHA-256 of the key in 64 lower-case hexadecimal digits" }),
      scopes: z.array(scopeText).min(1, { error: "must hold at least one scope" }),
    }),
  ),
});
export type ApiKeyFile = z.infer<typeof apiKeyFile>;

export interface NewApiKey {
  readonly key: string;
  readonly sha256: string;
}

export function makeApiKey(): NewApiKey {
  const key = API_KEY_PREFIX + randomBytes(32).toString("base64url");
  return { key, sha256: hashApiKey(key) };
}

export function hashApiKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

export class ApiKeyring {
  readonly #byHash = new Map<string, { readonly hash: Buffer; readonly principal: Principal }>();

  constructor(file: ApiKeyFile) {
    const ids = new Set<string>();
    for (const { id, sha256, scopes } of file.keys) {
      if (ids.has(id)) throw new RangeError(`two API keys have the id ${id}`);
      if (this.#byHash.has(sha256)) throw new RangeError(`the API key ${id} is there twice, under two ids`);
      ids.add(id);
      const parsed = scopes.map((text) => parseScope(text)).filter((scope) => scope !== undefined);
      this.#byHash.set(sha256, { hash: Buffer.from(sha256, "hex"), principal: { id, scopes: parsed } });
    }
  }

  get size(): number {
    return this.#byHash.size;
  }

  // The map is looked up by a hash, from whose timing nothing about the key can be learned; the bytes are then compared in constant time all the same.
  find(key: string): Principal | undefined {
    if (key.length < MIN_KEY_LENGTH || !KEY_SHAPE.test(key)) return undefined;
    const hash = createHash("sha256").update(key).digest();
    const entry = this.#byHash.get(hash.toString("hex"));
    return entry !== undefined && timingSafeEqual(entry.hash, hash) ? entry.principal : undefined;
  }
}
