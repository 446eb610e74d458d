// The body of a request: accepted media types, the limit of one body and of all together, UTF-8. It
// is read only when a route asks for it. What the JSON holds is judged in json-text.ts.
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { Problem } from "./answer.js";
import { markDiscarding, markReceiving } from "./connection-state.js";
import { jsonFault } from "./json.js";
import type { RequestContext, RequestHeaders } from "./request.js";
import { firstIssue } from "./schemas.js";

/** A gateway of half a gigabyte has room for it, and for what becomes of it. */
export const BODY_BUDGET_BYTES = 128 * 1024 * 1024;

/**
 * How many bytes of bodies the process may hold at a time, so that many large requests cannot
 * exhaust its memory.
 */
export class BodyBudget {
  #held = 0;
  constructor(readonly limitBytes: number) {}

  get heldBytes(): number {
    return this.#held;
  }

  tryTake(bytes: number): boolean {
    if (this.#held + bytes > this.limitBytes) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}

/** The body as what the schema says. */
export async function readJson<S extends z.ZodType>(
  context: RequestContext,
  schema: S,
  { limitBytes, budget }: { readonly limitBytes: number; readonly budget: BodyBudget },
): Promise<z.output<S> | Problem> {
  const unreadable = mediaTypeFault(context.headers, "document");
  if (unreadable !== undefined) return unreadable;
  const text = await readBody(context, limitBytes, budget);
  if (text instanceof Problem) return text;
  const fault = jsonFault(text, limitBytes);
  if (fault !== undefined) return fault;
  const parsed = schema.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : new Problem("json_invalid", firstIssue(parsed.error));
}

/** Requests with `Expect: 100-continue` that have not been told to continue. */
export const awaitsContinue = new WeakSet<IncomingMessage>();

/**
 * The whole body as text; a body that ends too early is refused. Its bytes stay counted in
 * `context.heldBytes` until the request is answered.
 */
export function readBody(context: RequestContext, limitBytes: number, budget: BodyBudget): Promise<string | Problem> {
  const { request, response } = context;
  if (Number(context.headers.contentLength ?? 0) > limitBytes) return Promise.resolve(tooLarge(limitBytes));
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
      resolve(result);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > limitBytes) settle(tooLarge(limitBytes));
      else if (!budget.tryTake(chunk.length)) settle(tooBusy());
      else {
        context.heldBytes += chunk.length;
        chunks.push(chunk);
      }
    };
    const onEnd = (): void => settle(request.complete ? toText(chunks, length) : truncated());
    const onBroken = (): void => settle(truncated());
    request.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
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

function tooBusy(): Problem {
  return new Problem("unavailable", "Too many bytes are being received at once.", { outcome: "not_applied", retryAfterSeconds: 1 });
}

function truncated(): Problem {
  return new Problem("request_malformed", "The body ended before its announced length.");
}

const accepted = {
  document: ["application/json"],
  merge_patch: ["application/merge-patch+json", "application/json"],
} as const satisfies Record<string, readonly string[]>;
const UTF8 = /^charset=(?:utf-8|"utf-8")$/i;

/**
 * Only JSON in UTF-8, not compressed. A merge patch names itself or is plain JSON; other patch
 * formats would be misread as documents.
 */
export function mediaTypeFault(headers: RequestHeaders, purpose: keyof typeof accepted): Problem | undefined {
  if (headers.contentEncoding !== undefined && headers.contentEncoding.toLowerCase() !== "identity") {
    return unsupportedMedia("Compressed bodies are not accepted; send the JSON as it is.");
  }
  const field = headers.contentType;
  if (field === "application/json") return undefined;
  const types: readonly string[] = accepted[purpose];
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
