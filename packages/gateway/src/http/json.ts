// Whether a text is JSON that the store can keep exactly, in one pass and without building what it
// says. The text itself is passed on unchanged: parsing and printing it would round
// 12345678901234567890. Refused is what is not JSON, what jsonb cannot hold (NUL, half surrogate
// pairs, numbers beyond numeric) and what would cost too much (depth, exponents that unfold).
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from "../fence/json.js";
import { Problem } from "./answer.js";

export const MAX_JSON_DEPTH = 100;
// jsonb keeps numbers as numeric: at most 131 072 digits before the decimal point and 16 383 after
// it; more after it is rounded away without an error.
const MAX_DIGITS_BEFORE_POINT = 100_000;
const MAX_DIGITS_AFTER_POINT = 16_000;
/** A number of so many characters without an exponent is never too long. */
const SHORT_NUMBER = 15;

const [COLON, MINUS, PLUS, POINT, ZERO, NINE] = [0x3a, 0x2d, 0x2b, 0x2e, 0x30, 0x39] as const;
/** Of e and E, with their third bit set. */
const LOWER_E = 0x65;
const ESCAPES = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)));
const words: ReadonlyMap<number, string> = new Map(["true", "false", "null"].map((word) => [word.charCodeAt(0), word]));

/**
 * Undefined when the text can be stored as it is. `limitBytes` also bounds what exponents unfold
 * to: 1e99999 is 7 characters here and 100 000 in an answer.
 */
export function jsonFault(text: string, limitBytes: number): Problem | undefined {
  if (text.length === 0) return refuse("The body is empty.");
  return new JsonText(text, limitBytes).fault();
}

class JsonText {
  readonly #text: string;
  readonly #limitBytes: number;
  /** The next character. */
  #at = 0;
  /** How long the text would be without exponents. */
  #unfolded: number;
  /** What closes each of the objects and arrays that are open. */
  readonly #open: number[] = [];

  constructor(text: string, limitBytes: number) {
    this.#text = text;
    this.#limitBytes = limitBytes;
    this.#unfolded = text.length;
  }

  fault(): Problem | undefined {
    for (;;) {
      const fault = this.#value() ?? this.#separators();
      if (fault === "end") return undefined;
      if (fault !== undefined) return fault;
    }
  }

  /** A scalar, or the beginning of an object or array up to its first value. */
  #value(): Problem | undefined {
    const character = this.#nextAfterSpace();
    if (character === QUOTE) return this.#string();
    if (character === OPEN_OBJECT || character === OPEN_ARRAY) return this.#begin(character);
    if (character === MINUS || isDigit(character)) return this.#number();
    const word = words.get(character) ?? "";
    if (word === "" || !this.#text.startsWith(word, this.#at)) return this.#malformed();
    this.#at += word.length;
    return undefined;
  }

  #begin(opening: number): Problem | undefined {
    if (this.#open.length === MAX_JSON_DEPTH) return refuse(`The body is nested deeper than ${MAX_JSON_DEPTH} levels.`);
    const closing = opening === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
    this.#open.push(closing);
    this.#at += 1;
    // An empty one is closed by what follows every value.
    if (this.#nextAfterSpace() === closing) return undefined;
    return (opening === OPEN_OBJECT ? this.#key() : undefined) ?? this.#value();
  }

  #key(): Problem | undefined {
    if (this.#nextAfterSpace() !== QUOTE) return this.#malformed();
    const fault = this.#string();
    if (fault !== undefined) return fault;
    if (this.#nextAfterSpace() !== COLON) return this.#malformed();
    this.#at += 1;
    return undefined;
  }

  /** What closes after a value, up to the next one; "end" at the end of the text. */
  #separators(): Problem | "end" | undefined {
    for (;;) {
      const character = this.#nextAfterSpace();
      const closing = this.#open.at(-1);
      if (closing === undefined) return this.#at === this.#text.length ? "end" : this.#malformed();
      this.#at += 1;
      if (character === COMMA) return closing === CLOSE_OBJECT ? this.#key() : undefined;
      if (character !== closing) {
        this.#at -= 1;
        return this.#malformed();
      }
      this.#open.pop();
    }
  }

  #string(): Problem | undefined {
    const text = this.#text;
    let at = this.#at + 1;
    for (; at < text.length; at++) {
      const character = text.charCodeAt(at);
      if (character === QUOTE) {
        this.#at = at + 1;
        return undefined;
      }
      if (character === BACKSLASH) {
        this.#at = at;
        const fault = this.#escape();
        if (fault !== undefined) return fault;
        at = this.#at - 1;
      } else if (character < 0x20) break;
    }
    this.#at = at;
    return this.#malformed();
  }

  #escape(): Problem | undefined {
    const kind = this.#text.charCodeAt(this.#at + 1);
    if (ESCAPES.has(kind)) {
      this.#at += 2;
      return undefined;
    }
    const unit = this.#escapedUnit(this.#at);
    if (unit === undefined) return this.#malformed();
    if (unit === 0) return refuse("A string contains \\u0000, which the database cannot keep.");
    const isHigh = unit >= 0xd800 && unit <= 0xdbff;
    const low = isHigh ? this.#escapedUnit(this.#at + 6) : undefined;
    const isPair = low !== undefined && isLow(low);
    if (isLow(unit) || (isHigh && !isPair)) return refuse("A string contains half of a surrogate pair, which is not a character.");
    this.#at += isPair ? 12 : 6;
    return undefined;
  }

  /** Of \uXXXX at this place; undefined where there is none. */
  #escapedUnit(at: number): number | undefined {
    const hex = this.#text.slice(at, at + 6);
    return /^\\u[0-9a-fA-F]{4}$/.test(hex) ? Number.parseInt(hex.slice(2), 16) : undefined;
  }

  #number(): Problem | undefined {
    const start = this.#at;
    if (this.#text.charCodeAt(this.#at) === MINUS) this.#at += 1;
    const before = this.#digits();
    if (before === 0 || (before > 1 && this.#text.charCodeAt(this.#at - before) === ZERO)) return this.#malformed();
    let after = 0;
    if (this.#text.charCodeAt(this.#at) === POINT) {
      this.#at += 1;
      after = this.#digits();
      if (after === 0) return this.#malformed();
    }
    const hasExponent = (this.#text.charCodeAt(this.#at) | 0x20) === LOWER_E;
    if (!hasExponent) return this.#at - start <= SHORT_NUMBER ? undefined : this.#size(before, after, 0);
    this.#at += 1;
    const exponentAt = this.#at;
    const sign = this.#text.charCodeAt(this.#at);
    if (sign === PLUS || sign === MINUS) this.#at += 1;
    return this.#digits() === 0 ? this.#malformed() : this.#size(before, after, Number(this.#text.slice(exponentAt, this.#at)));
  }

  #size(before: number, after: number, exponent: number): Problem | undefined {
    if (before + Math.max(0, exponent) > MAX_DIGITS_BEFORE_POINT || after + Math.max(0, -exponent) > MAX_DIGITS_AFTER_POINT)
      return refuse("A number has more digits than the database can keep exactly.");
    this.#unfolded += Math.abs(exponent);
    if (this.#unfolded <= this.#limitBytes) return undefined;
    return new Problem("body_too_large", `Written out without exponents the body exceeds ${this.#limitBytes} bytes.`);
  }

  /** How many digits stand here; goes past them. */
  #digits(): number {
    const start = this.#at;
    let at = start;
    while (isDigit(this.#text.charCodeAt(at))) at += 1;
    this.#at = at;
    return at - start;
  }

  #nextAfterSpace(): number {
    let at = this.#at;
    let character = this.#text.charCodeAt(at);
    while (character === 0x20 || character === 0x0a || character === 0x0d || character === 0x09) {
      at += 1;
      character = this.#text.charCodeAt(at);
    }
    this.#at = at;
    return character;
  }

  /** No part of the document: it must not appear in an error or a log. */
  #malformed(): Problem {
    const isOver = this.#at >= this.#text.length;
    return refuse(`The body is not JSON: ${isOver ? "it ends too early." : `it breaks the grammar at character ${this.#at}.`}`);
  }
}

function isDigit(character: number): boolean {
  return character >= ZERO && character <= NINE;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function refuse(detail: string): Problem {
  return new Problem("json_invalid", detail);
}
