// Mistakes of a caller, found before anything is sent: each error names the option or the place in
// the document, what was given, and what to write instead.

/** An object whose names are all known: a misspelt option would be ignored until it matters. */
export function checkOptions(call: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) throw new TypeError(`${call} needs an object of options, not ${shown(options)}`);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`${call} has no option ${JSON.stringify(name)}; it has ${known.join(", ")}`);
  }
}

/** What is passed must have this method, whatever class it is of. */
export function checkMethod(value: unknown, method: string, needs: string): void {
  if (typeof (value as Record<string, unknown> | null | undefined)?.[method] !== "function")
    throw new TypeError(`${needs}, not ${shown(value)}`);
}

const REDIS_PORTS: ReadonlySet<string> = new Set(["6379", "6380", "26379"]);

/** The base of every address, without a slash at its end. */
export function baseUrl(url: unknown): string {
  const example = "http://127.0.0.1:8080";
  if (typeof url !== "string") throw new TypeError(`createGatewayClient needs { url: "${example}" }; url is ${shown(url)}`);
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
    throw new TypeError(`url must begin with http:// or https://, for example ${example}; it is ${JSON.stringify(url)}`);
  if (parsed.username !== "" || parsed.password !== "")
    throw new TypeError("url must not hold a user or a password: fetch refuses it. The credential is the option apiKey");
  if (/\/v1\/*$/.test(parsed.pathname))
    throw new TypeError(`url must not end in /v1, which every path begins with; write ${JSON.stringify(url.replace(/\/v1\/*$/, ""))}`);
  if (REDIS_PORTS.has(parsed.port))
    throw new TypeError(`url must be the gateway's address, for example ${example}; port ${parsed.port} is that of Redis, the lock's node`);
  return parsed.href.replace(/\/+$/, "");
}

export function checkApiKey(apiKey: unknown): void {
  if (apiKey === undefined) return;
  // What a header cannot carry would fail in every call, as a network error.
  if (typeof apiKey !== "string" || !/^[\x21-\x7e]+$/.test(apiKey))
    throw new TypeError(`apiKey must be the text that keygen printed, without spaces or line ends; it is ${shownSecret(apiKey)}`);
}

export function checkMilliseconds(name: string, value: unknown): void {
  if (value === undefined) return;
  if (typeof value !== "number" || !(value > 0 && value <= 2_147_483_647))
    throw new RangeError(`${name} must be milliseconds from 1 to 2147483647, not ${shown(value)}`);
}

/** A lease whose `await` was forgotten has no token. */
export function checkAwaited(lease: unknown): void {
  if (isPromise(lease)) throw new TypeError("the lease is a Promise: write await before acquire");
}

function isPromise(value: unknown): boolean {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/** The lease must be the one of this resource: another's token may be too low here, or too high. */
export function checkLease(resource: string, resources: readonly string[] | undefined): void {
  if (resources === undefined || resources.includes(resource)) return;
  const own = resources.map((name) => JSON.stringify(name)).join(", ");
  throw new RangeError(
    `the lease is of ${own}, not of ${JSON.stringify(resource)}: acquire both in one lease, ` +
      "or pass { token: lease.token } if one lock guards several documents on purpose",
  );
}

/** JSON.stringify would change these without a word. Members that are undefined are left out. */
export function checkDocument(value: unknown, path = "the document"): void {
  const problem = whyNotJson(value);
  if (problem !== undefined) throw new TypeError(`${path} is ${problem}`);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      if (item === undefined) throw new TypeError(`${path}[${index}] is undefined: JSON would store null; write null`);
      checkDocument(item, `${path}[${index}]`);
    }
  } else if (typeof value === "object" && value !== null && !hasToJson(value)) {
    for (const [name, member] of Object.entries(value)) if (member !== undefined) checkDocument(member, `${path}.${name}`);
  }
}

function whyNotJson(value: unknown): string | undefined {
  if (typeof value === "number" && !Number.isFinite(value)) return `${value}: JSON has no such number; write null, or leave it out`;
  if (typeof value === "bigint") return `the bigint ${value}: write it as text, or use rawJson for a number with every digit`;
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}: JSON cannot hold it; leave it out`;
  if (value instanceof Date) return "a Date, which would be read back as text: write date.toISOString() or date.getTime()";
  if (value instanceof Map || value instanceof Set) return `a ${value.constructor.name}: JSON would store {}; write an array or an object`;
  return undefined;
}

function hasToJson(value: object): boolean {
  return typeof (value as { readonly toJSON?: unknown }).toJSON === "function";
}

/** Short, and without the content of objects, which may be secret. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "string") return JSON.stringify(value.slice(0, 40));
  if (isPromise(value)) return "a Promise: is an await missing?";
  if (typeof value === "object") return Array.isArray(value) ? "an array" : "an object";
  return typeof value === "function" ? "a function" : `${typeof value} ${String(value)}`;
}

function shownSecret(value: unknown): string {
  return typeof value === "string" ? `a text of ${value.length} characters with one that a header cannot carry` : shown(value);
}
