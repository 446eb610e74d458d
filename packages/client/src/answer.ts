// What came back, read in one place for all calls: a success, a problem of the gateway, or neither.
// Between a client and its gateway stand proxies, log-in pages and other servers, and each of them
// answers 200 to anything. A success is believed only if it carries what the gateway alone knows,
// the token that was sent and the entity tag of the revision; a refusal, if it is a problem document
// of the gateway under the status that it names. Of everything else it is not known what became of
// the request (G3).
import type { Received } from "./exchange.js";
import { problemCodes, type Refusal, type RefusalCode } from "./results.js";

/** What a success of a call has to be. */
export interface Expected {
  readonly statuses: readonly number[];
  /** The Fencing-Token that is due: the one that was sent, or "any" after a read. */
  readonly token?: number | "any" | undefined;
  /** The ETag that is due: this revision, or "any". */
  readonly rev?: number | "any" | undefined;
  /** Whether the body, parsed as JSON, is about what was asked for; absent where there is no body. */
  readonly body?: ((body: Fields, rev: number) => boolean) | undefined;
}

export type Fields = Readonly<Record<string, unknown>>;

export interface Success {
  readonly ok: true;
  readonly status: number;
  readonly text: string;
  /** The text, parsed; undefined where there is none. */
  readonly body: unknown;
  /** 0 without an entity tag: of what was never written, and of answers about several resources. */
  readonly rev: number;
  readonly token: number;
  readonly replayed: boolean;
}

export interface Asked {
  /** Of the gateway. */
  readonly base: string;
  readonly resource: string | undefined;
  readonly expects: Expected;
}

export function readAnswer(asked: Asked, answer: Received): Success | Refusal {
  const { status, text } = answer;
  const mediaType = (answer.header("content-type") ?? "").replace(/;.*/s, "").trim().toLowerCase();
  const body = parsed(text);
  if ((status < 200 || status > 299) && status !== 304) {
    const isProblem = mediaType === "application/problem+json" && isOfGateway(body, status, asked.resource);
    return isProblem ? refusalOf(body, answer) : notUnderstood(asked, "has no problem document of the gateway", answer);
  }
  const seen: Success = {
    ok: true,
    status,
    text,
    body,
    // A proxy that compresses answers marks the tag as weak (W/).
    rev: Number(/^(?:W\/)?"(\d+)"$/.exec(answer.header("etag") ?? "")?.[1] ?? 0),
    token: Number(/^\d+$/.exec(answer.header("fencing-token") ?? "")?.[0] ?? 0),
    replayed: false,
  };
  const fault = faultOf(seen, asked.expects, mediaType);
  return fault === undefined ? seen : notUnderstood(asked, fault, answer);
}

/** Why the gateway cannot have said this in answer to the call. */
function faultOf({ status, rev, token, body }: Success, { statuses, ...due }: Expected, mediaType: string): string | undefined {
  if (!statuses.includes(status)) return "has a status that the gateway never answers to this";
  if (due.token !== undefined && (due.token === "any" ? token === 0 : token !== due.token))
    return `has ${token === 0 ? "no Fencing-Token" : `the Fencing-Token ${token}, and ${due.token} was sent`}`;
  if (status === 304 ? rev !== due.rev : due.rev !== undefined && rev === 0)
    return rev === 0 ? "has no ETag of a revision" : `has the ETag of revision ${rev}, and ${due.rev} was asked for`;
  if (status === 304 || due.body === undefined) return undefined;
  if (mediaType !== "application/json" || body === undefined) return "is not JSON";
  return due.body((body ?? {}) as Fields, rev) ? undefined : "is not about what was asked for";
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * What the text says. JSON.parse of Node 24 to 26 reads a key with an escape, such as "\n", as one that
 * contains a backslash if it has met that before (nodejs/node#63785), and it would be stored so. A
 * text that seems to have such a key is read once more, with another sign in the place of its escapes.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return text.includes("\\") && hasKeyWithBackslash(value) ? parseWithoutEscapes(text) : value;
}

function hasKeyWithBackslash(value: unknown): boolean {
  const parts = [value];
  for (const part of parts) {
    if (typeof part !== "object" || part === null) continue;
    if (!Array.isArray(part) && Object.keys(part).some((key) => key.includes("\\"))) return true;
    for (const inner of Object.values(part)) parts.push(inner);
  }
  return false;
}

function parseWithoutEscapes(text: string): unknown {
  let code = 0xe000; // For private use.
  while (text.includes(String.fromCharCode(code))) code += 1;
  const sign = String.fromCharCode(code);
  const hexOf = (letter: string): string => (JSON.parse(`"\\${letter}"`) as string).charCodeAt(0).toString(16).padStart(4, "0");
  const written = text.replace(/\\(?:u(....)|(.))/g, (_escape, hex?: string, letter = "") => sign + (hex ?? hexOf(letter)));
  const signs = new RegExp(`${sign}(....)`, "g");
  const meant = (part: string): string => part.replace(signs, (_sign, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return JSON.parse(written, (_key, part: unknown) => {
    if (typeof part === "string") return meant(part);
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).map(([key, inner]) => [meant(key), inner]));
  });
}

interface ProblemDocument extends Omit<Refusal, "ok" | "outcome" | "attempts"> {
  readonly outcome?: Refusal["outcome"];
}

/** Other JSON APIs have codes, details and problem documents too. */
function isOfGateway(body: unknown, status: number, resource: string | undefined): body is ProblemDocument {
  const problem = (body ?? {}) as Partial<ProblemDocument> & { readonly type?: unknown };
  const isKnown = problemCodes.some((code) => code === problem.code) && problem.type === `urn:palisade:problem:${problem.code}`;
  const isAbout = problem.resource === undefined || resource === undefined || problem.resource === resource;
  return isKnown && isAbout && problem.status === status && typeof problem.detail === "string";
}

function refusalOf(problem: ProblemDocument, answer: Received): Refusal {
  return {
    ok: false,
    code: problem.code,
    detail: problem.detail,
    outcome: problem.outcome ?? (problem.code === "internal" ? "unknown" : "not_applied"),
    status: problem.status,
    resource: problem.resource,
    presentedToken: problem.presentedToken,
    currentToken: problem.currentToken,
    currentSeq: problem.currentSeq,
    currentETag: problem.currentETag,
    currentRevs: problem.currentRevs,
    operation: problem.operation,
    requestId: problem.requestId,
    retryAfterMs: retryAfterMs(answer),
    attempts: 1,
  };
}

/** Something in between answered, and may have passed the request on. */
function notUnderstood({ base }: Asked, fault: string, answer: Received): Refusal {
  const { status, text } = answer;
  const begins = text === "" ? "It has no body." : `It begins with ${JSON.stringify(text.slice(0, 80))}.`;
  const advice = "Is it the gateway's API? Its probes have another port.";
  return {
    ...local("answer_not_understood", `Status ${status} came from ${base}, and ${fault}. ${begins} ${advice}`, "unknown"),
    status,
    retryAfterMs: retryAfterMs(answer),
  };
}

function retryAfterMs(answer: Received): number | undefined {
  const seconds = Number(answer.header("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : undefined;
}

/** A refusal of the client itself. */
export function local(code: RefusalCode, detail: string, outcome: Refusal["outcome"]): Refusal {
  return { ok: false, code, detail, outcome, attempts: 1 };
}
