// The body of a request: accepted media types, the limit of one body and of all together, UTF-8, and
// whether it is JSON that the store can keep exactly. It is read only when a route asks for it, and
// passed on as the text that it was: parsing and printing it would round 12345678901234567890.
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from "../fence/json.js";
import { markDiscarding, markReceiving } from "./connection-state.js";
import { notApplied, Problem } from "./problems.js";
import type { RequestContext, RequestHeaders } from "./request.js";
import { firstIssue } from "./schemas.js";
import { Shares } from "./shares.js";

/** A gateway of half a gigabyte has room for it, and for what becomes of it. */
export const BODY_BUDGET_BYTES = 128 * 1024 * 1024;
/** What one read of a socket may bring. */
const SMALL_BYTES = 64 * 1024;

/** A line that is slower than a bad mobile one would hold its bytes for nothing. */
const LEAST_BYTES_PER_SECOND = 4 * 1024;
/** Longer than packets that were lost take to come again. */
const LOOK_EVERY_MS = 5_000;

/**
 * The bodies that are being received: how many of their bytes the process may hold at a time, of which
 * each caller has its share, and the end of those that come too slowly.
 */
export class Bodies {
  readonly shares: Shares;
  readonly #lookEveryMs: number;
  readonly #received = new Map<IncomingMessage, (problem: Problem) => void>();
  #timer: NodeJS.Timeout | undefined;
  /** Bytes that the connections of bodies had brought at the last look. */
  #before = new Map<IncomingMessage, number>();

  constructor(limitBytes = BODY_BUDGET_BYTES, lookEveryMs = LOOK_EVERY_MS) {
    this.shares = new Shares(limitBytes);
    this.#lookEveryMs = lookEveryMs;
  }

  begin(request: IncomingMessage, refuse: (problem: Problem) => void): void {
    this.#received.set(request, refuse);
    // What has arrived while the process stood still is read before the look.
    this.#timer ??= setInterval(() => setImmediate(() => this.#look()), this.#lookEveryMs).unref();
  }

  end(request: IncomingMessage): void {
    this.#received.delete(request);
  }

  #look(): void {
    const least = (LEAST_BYTES_PER_SECOND * this.#lookEveryMs) / 1_000;
    const now = new Map<IncomingMessage, number>();
    for (const [request, refuse] of this.#received) {
      const { bytesRead } = request.socket;
      if (bytesRead - (this.#before.get(request) ?? Number.NEGATIVE_INFINITY) < least) refuse(tooSlow);
      else now.set(request, bytesRead);
    }
    this.#before = now;
    if (now.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** How much of a body is read. */
interface Limits {
  readonly bodies: Bodies;
  /** Of one body: the longest that is taken. */
  readonly bodyLimitBytes: number;
}

/** The body as JSON text that the store can keep. Its bytes stay counted until the request is answered. */
export async function readText(context: RequestContext, purpose: keyof typeof mediaTypes, limits: Limits): Promise<string | Problem> {
  const unreadable = mediaTypeFault(context.headers, purpose);
  if (unreadable !== undefined) return unreadable;
  const text = await receive(context, limits);
  return text instanceof Problem ? text : (jsonFault(text, limits.bodyLimitBytes) ?? text);
}

/** Of what an operator orders. */
const SMALL_BODY_BYTES = 16 * 1024;

/** A small body as what the schema says. */
export async function readJson<S extends z.ZodType>(context: RequestContext, schema: S, bodies: Bodies): Promise<z.output<S> | Problem> {
  const text = await readText(context, "document", { bodies, bodyLimitBytes: SMALL_BODY_BYTES });
  if (text instanceof Problem) return text;
  const parsed = schema.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : new Problem("json_invalid", firstIssue(parsed.error));
}

/** What a body may be sent as. */
export const mediaTypes = {
  document: ["application/json"],
  merge_patch: ["application/merge-patch+json", "application/json"],
} as const satisfies Record<string, readonly string[]>;
const UTF8 = /^charset=(?:utf-8|"utf-8")$/i;

/**
 * Only JSON in UTF-8, not compressed. A merge patch names itself or is plain JSON; other patch
 * formats would be misread as documents.
 */
export function mediaTypeFault(headers: RequestHeaders, purpose: keyof typeof mediaTypes): Problem | undefined {
  if (headers.contentEncoding !== undefined && headers.contentEncoding.toLowerCase() !== "identity") {
    return unsupportedMedia("Compressed bodies are not accepted; send the JSON as it is.");
  }
  const field = headers.contentType;
  if (field === "application/json") return undefined;
  const types: readonly string[] = mediaTypes[purpose];
  if (field === undefined) return unsupportedMedia(`The Content-Type header is missing; it must be ${types.join(" or ")}.`);
  const [type = "", ...parameters] = field.split(";").map((part) => part.trim());
  if (!types.includes(type.toLowerCase())) return unsupportedMedia(`The Content-Type must be ${types.join(" or ")}.`);
  if (!parameters.every((parameter) => UTF8.test(parameter)))
    return unsupportedMedia("JSON is UTF-8; no other charset or parameter is accepted.");
  return undefined;
}

function unsupportedMedia(detail: string): Problem {
  return new Problem("media_type_unsupported", detail);
}

/** Requests with `Expect: 100-continue` that have not been told to continue. */
export const awaitsContinue = new WeakSet<IncomingMessage>();

/** The whole body as text; a body that ends too early is refused. */
function receive(context: RequestContext, { bodies, bodyLimitBytes }: Limits): Promise<string | Problem> {
  const { request, response, principal } = context;
  if (Number(context.headers.contentLength ?? 0) > bodyLimitBytes) return Promise.resolve(tooLarge(bodyLimitBytes));
  if (request.readableDidRead || request.readableEnded) return Promise.resolve(readElsewhere());
  // Gone before the first listener (the credential was checked asynchronously): no event would ever
  // come.
  if (request.destroyed) return Promise.resolve(truncated());
  if (awaitsContinue.delete(request)) response.writeContinue();
  markReceiving(request.socket, request);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (result: string | Problem): void => {
      request.off("data", onData).off("end", onEnd).off("error", onBroken).off("close", onBroken);
      markReceiving(request.socket, undefined);
      bodies.end(request);
      resolve(result);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > bodyLimitBytes) settle(tooLarge(bodyLimitBytes));
      else if (!bodies.shares.tryTake(principal.id, chunk.length, length <= SMALL_BYTES))
        settle(notApplied("unavailable", "Too many bytes are being received at once."));
      else {
        context.heldBytes += chunk.length;
        chunks.push(chunk);
      }
    };
    const onEnd = (): void => settle(request.complete ? toText(chunks, length) : truncated());
    const onBroken = (): void => settle(truncated());
    request.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
    bodies.begin(request, settle);
  });
}

const MAX_DISCARDED_BYTES = 16 * 1024 * 1024;

/**
 * After a refusal that did not need the body: lets the client finish sending, so that it reads the
 * answer instead of a connection reset, but not without end. The request timeout bounds how long
 * that may take.
 */
export function discardRest(request: IncomingMessage): void {
  if (request.complete) return;
  markDiscarding(request);
  let length = 0;
  request.on("error", () => undefined);
  request.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > MAX_DISCARDED_BYTES) request.destroy();
  });
}

function readElsewhere(): Problem {
  const detail =
    "The body was read before it reached the gateway: mount gateway.app before express.json() and other body parsers, or keep them from its paths.";
  return new Problem("internal", detail, { outcome: "not_applied" });
}

function toText(chunks: readonly Buffer[], length: number): string | Problem {
  const bytes = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length);
  if (!isUtf8(bytes)) return new Problem("json_invalid", "The body is not UTF-8.");
  return bytes.toString("utf8");
}

function tooLarge(limitBytes: number): Problem {
  return new Problem("body_too_large", `The body is larger than ${limitBytes} bytes.`);
}

const tooSlow = new Problem("request_timeout", "The body came too slowly.", { outcome: "not_applied" });

function truncated(): Problem {
  return new Problem("request_malformed", "The body ended before its announced length.");
}

// Whether a text is JSON that the store can keep exactly, in one pass and without building what it
// says. Refused is what is not JSON, what jsonb cannot hold (NUL, half surrogate pairs, numbers
// beyond numeric) and what would cost too much (depth, exponents that unfold).

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
