// Whether a text is JSON that the store can keep exactly. The text itself is passed on unchanged:
// parsing and printing it would round 12345678901234567890. Refused is what jsonb cannot hold (NUL,
// half surrogate pairs, numbers beyond numeric) and what would cost too much (depth, exponents that
// unfold).
import { Problem } from "./problem.js";

export const MAX_JSON_DEPTH = 100;
// jsonb keeps numbers as numeric: at most 131 072 digits before the decimal point and 16 383 after
// it; more after it is rounded away without an error.
const MAX_DIGITS_BEFORE_POINT = 100_000;
const MAX_DIGITS_AFTER_POINT = 16_000;
const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Undefined when the text can be stored as it is. `limitBytes` also bounds what exponents unfold
 * to: 1e99999 is 7 characters here and 100 000 in an answer.
 */
export function jsonFault(text: string, limitBytes: number): Problem | undefined {
  const fault = scan(text, limitBytes);
  if (fault !== undefined) return fault;
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return refuse(text.length === 0 ? "The body is empty." : `The body is not JSON: ${positionOnly(error)}`);
  }
}

// Runs before JSON.parse has judged the text, so the text may be anything; the scan has to be right
// only about texts that JSON.parse then accepts.
function scan(text: string, limitBytes: number): Problem | undefined {
  let depth = 0;
  let unfolded = text.length;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      at = endOfString(text, at);
      if (at === NUL_IN_STRING) return refuse("A string contains \\u0000, which the database cannot keep.");
      if (at === HALF_PAIR_IN_STRING) return refuse("A string contains half of a surrogate pair, which is not a character.");
    } else if (character === 0x7b || character === 0x5b) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return refuse(`The body is nested deeper than ${MAX_JSON_DEPTH} levels.`);
    } else if (character === 0x7d || character === 0x5d) {
      depth -= 1;
    } else if (character === 0x2d || (character >= 0x30 && character <= 0x39)) {
      const end = endOfNumber(text, at);
      if (end - at > 15 || hasExponent(text, at, end)) {
        const growth = growthOf(text.slice(at, end));
        if (growth === undefined) return refuse("A number has more digits than the database can keep exactly.");
        unfolded += growth;
        if (unfolded > limitBytes)
          return new Problem("body_too_large", `Written out without exponents the body exceeds ${limitBytes} bytes.`);
      }
      at = end - 1;
    }
  }
  return undefined;
}

const NUL_IN_STRING = -1;
const HALF_PAIR_IN_STRING = -2;

/**
 * The index of the closing quote, of the last character when there is none, or one of the two
 * faults above. Reads each character once.
 */
function endOfString(text: string, start: number): number {
  let high = false;
  let at = start + 1;
  for (; at < text.length; at++) {
    const character = text.charCodeAt(at);
    const escapedUnit = character === BACKSLASH && text.charCodeAt(at + 1) === 0x75 ? Number.parseInt(text.slice(at + 2, at + 6), 16) : -1;
    if (high !== isLow(escapedUnit)) return HALF_PAIR_IN_STRING;
    if (character === QUOTE) return at;
    if (escapedUnit === 0) return NUL_IN_STRING;
    high = isHigh(escapedUnit);
    if (character === BACKSLASH) at += escapedUnit === -1 ? 1 : 5;
  }
  return text.length - 1;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function endOfNumber(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length) {
    const character = text.charCodeAt(at);
    const digit = character >= 0x30 && character <= 0x39;
    if (!digit && character !== 0x2e && character !== 0x2b && character !== 0x2d && (character | 0x20) !== 0x65) break;
    at += 1;
  }
  return at;
}

function hasExponent(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((text.charCodeAt(at) | 0x20) === 0x65) return true;
  return false;
}

/**
 * How many characters longer the number is without its exponent; undefined when it has too many
 * digits. 0 for what is no number: JSON.parse refuses that.
 */
function growthOf(literal: string): number | undefined {
  const [, before, after = "", exponentText = "0"] = NUMBER.exec(literal) ?? [];
  if (before === undefined) return 0;
  const exponent = Number(exponentText);
  if (before.length + Math.max(0, exponent) > MAX_DIGITS_BEFORE_POINT || after.length + Math.max(0, -exponent) > MAX_DIGITS_AFTER_POINT)
    return undefined;
  return Math.abs(exponent);
}

// V8 quotes a part of the text in its message; a document must not appear in an error or a log.
function positionOnly(error: unknown): string {
  const position = /position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
  return position === undefined ? "it ends too early or breaks the grammar." : `it breaks the grammar at character ${position}.`;
}

function refuse(detail: string): Problem {
  return new Problem("json_invalid", detail);
}
