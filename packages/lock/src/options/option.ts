// Reads one option of a caller: the right type, within its bounds, or an error that names the
// option, what was given and what would do.
import { MAX_TOKEN, TOKENS_PER_MS } from "../protocol/token.js";

// With the u flag a surrogate pair is one character, so only a lone surrogate matches.
const LONE_SURROGATE = /\p{Surrogate}/u;

interface Bounds {
  readonly min: number;
  readonly max: number;
  /** Used when the option is left out; without one the option is required. */
  readonly fallback?: number;
}

/** A whole number within bounds. */
export function wholeNumber(name: string, value: unknown, bounds: Bounds): number {
  const number = anyNumber(name, value, bounds);
  if (Number.isInteger(number) || number === Number.POSITIVE_INFINITY) return number;
  throw new RangeError(`${name} must be a whole number, not ${number}`);
}

/** A number within bounds, fractions included. */
export function anyNumber(name: string, value: unknown, { min, max, fallback }: Bounds): number {
  if (value === undefined && fallback !== undefined) return fallback;
  if (typeof value !== "number") throw new TypeError(`${name} must be a number, not ${shown(value)}`);
  if (value >= min && value <= max) return value;
  throw new RangeError(`${name} must be from ${min} to ${max}, not ${value}`);
}

/** A fencing token. */
export function tokenOption(value: unknown): number {
  return wholeNumber("token", value, { min: 1, max: MAX_TOKEN });
}

/** Tokens of any fleet stay below its clock's; clocks differ by less than a day. */
const CLOCKS_DIFFER_MS = 86_400_000;

/** A token of another fleet, or 0 for none: one that a fleet can have issued by now. */
export function foreignTokenOption(value: unknown, wallMs: number): number {
  if (value === 0) return 0;
  const token = wholeNumber("atLeast", value, { min: 1, max: MAX_TOKEN });
  const most = TOKENS_PER_MS * (wallMs + CLOCKS_DIFFER_MS);
  if (token <= most) return token;
  throw new RangeError(`atLeast is ${token}, and no fleet has issued more than ${most} by now: tokens that are skipped never come back`);
}

/**
 * Text that survives the way to UTF-8 and back: without lone surrogates, and within a number of
 * bytes.
 */
export function wellFormedText(name: string, value: unknown, maxBytes: number): string {
  if (typeof value !== "string") throw new TypeError(`${name} must be a string, not ${shown(value)}`);
  if (value === "") throw new RangeError(`${name} must not be empty`);
  // A UTF-16 unit needs three bytes at most: only long texts need to be counted.
  if (value.length * 3 > maxBytes && Buffer.byteLength(value) > maxBytes) {
    throw new RangeError(`${name} must be at most ${maxBytes} bytes of UTF-8, not ${Buffer.byteLength(value)}`);
  }
  // Two different lone surrogates become the same U+FFFD on the way to Redis: two resources would
  // share one lock.
  if (LONE_SURROGATE.test(value)) throw new RangeError(`${name} is not well-formed Unicode: ${JSON.stringify(value)}`);
  return value;
}

/**
 * An object whose names are all known: a misspelt option that is silently ignored would be found in
 * production.
 */
export function knownOptions<T extends object>(name: string, value: unknown, known: readonly string[]): Partial<Record<keyof T, unknown>> {
  if (value === undefined) return {};
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError(`the options of ${name} must be an object, not ${shown(value)}`);
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) throw new TypeError(`${name} has no option ${JSON.stringify(key)}; it has ${known.join(", ")}`);
  }
  return value as Partial<Record<keyof T, unknown>>;
}

/**
 * The value as it may appear in a message: short, and without the content of objects, which may be
 * secret.
 */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  if (typeof value === "function") return "a function";
  return typeof value === "object" ? "an object" : `${typeof value} ${String(value).slice(0, 40)}`;
}
