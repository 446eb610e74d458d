// One request, sent once, under one timeout, to one answer or one refusal that says whether
// something may have changed.
import { problemCodes, type Refusal, type RefusalCode } from "./results.js";

export interface Call {
  readonly method: "GET" | "PUT" | "PATCH" | "DELETE" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
}

export interface Success {
  readonly ok: true;
  readonly status: number;
  readonly text: string;
  readonly rev: number;
  readonly token: number;
  readonly replayed: boolean;
}

export type Transport = (call: Call) => Promise<Success | Refusal>;

export function createTransport(base: string, apiKey: string | undefined, fetchWith: typeof fetch): Transport {
  const authorization: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return async (call) => {
    const limit = new Limit(call);
    try {
      const response = await fetchWith(base + call.path, {
        method: call.method,
        headers: { ...authorization, ...call.headers },
        signal: limit.signal,
        // A redirect would send the credential and the write to a place the caller did not name.
        redirect: "error",
        ...(call.body === undefined ? {} : { body: call.body }),
      });
      const text = await response.text();
      return response.ok || response.status === 304 ? success(response, text) : refusalOf(base, response, text);
    } catch (error) {
      if (call.signal?.aborted === true) return local("aborted", "The call was given up by its caller.", "unknown");
      if (limit.isReached) return local("timed_out", `No complete answer came from ${base} within ${call.timeoutMs} ms.`, "unknown");
      return local(
        "connection_failed",
        `The gateway at ${base} could not be reached: ${reasonOf(error)}.`,
        neverSent(error) ? "not_applied" : "unknown",
      );
    } finally {
      limit.lift();
    }
  };
}

/**
 * The end of one try: its time is over, or the caller aborts. Removed with the answer, because a
 * caller's signal may live as long as the process: what AbortSignal.any leaves on it stays there
 * (Node 20), and AbortSignal.timeout keeps every call in memory until its time would have been
 * over.
 */
class Limit {
  readonly #controller = new AbortController();
  readonly #given: AbortSignal | undefined;
  readonly #timer: ReturnType<typeof setTimeout>;
  isReached = false;

  constructor({ signal, timeoutMs }: Pick<Call, "signal" | "timeoutMs">) {
    this.#given = signal;
    this.#timer = setTimeout(() => {
      this.isReached = true;
      this.#controller.abort();
    }, timeoutMs);
    if (signal?.aborted === true) this.#giveUp();
    else signal?.addEventListener("abort", this.#giveUp);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  lift(): void {
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#giveUp);
  }

  readonly #giveUp = (): void => this.#controller.abort(this.#given?.reason);
}

function success(response: Response, text: string): Success {
  return {
    ok: true,
    status: response.status,
    text,
    // A proxy that compresses answers marks the tag as weak (W/).
    rev: Number(/^(?:W\/)?"(\d+)"$/.exec(response.headers.get("etag") ?? "")?.[1] ?? 0),
    token: Number(response.headers.get("fencing-token") ?? 0),
    replayed: false,
  };
}

export function local(code: RefusalCode, detail: string, outcome: Refusal["outcome"]): Refusal {
  return { ok: false, code, detail, outcome, attempts: 1 };
}

/**
 * A status without one of the gateway's codes comes from something in between, which may have
 * passed the request on.
 */
export function refusalOf(base: string, response: Response, text: string): Refusal {
  const problem = parseProblem(text);
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(retryAfter) ? retryAfter * 1_000 : undefined;
  if (problem === undefined) {
    return {
      ...local(
        "answer_not_understood",
        `Status ${response.status} came from ${base} without a problem document. Is it the gateway's API? Its probes have another port.`,
        "unknown",
      ),
      status: response.status,
      retryAfterMs,
    };
  }
  return {
    ok: false,
    code: problem.code,
    detail: problem.detail,
    outcome: problem.outcome ?? (problem.code === "internal" ? "unknown" : "not_applied"),
    status: response.status,
    resource: problem.resource,
    presentedToken: problem.presentedToken,
    currentToken: problem.currentToken,
    currentSeq: problem.currentSeq,
    currentETag: problem.currentETag,
    currentRevs: problem.currentRevs,
    operation: problem.operation,
    requestId: problem.requestId,
    retryAfterMs,
    attempts: 1,
  };
}

interface ProblemDocument extends Omit<Refusal, "ok" | "outcome" | "attempts"> {
  readonly outcome?: Refusal["outcome"];
}

function parseProblem(text: string): ProblemDocument | undefined {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return undefined;
  }
  const problem = document as Partial<ProblemDocument> | null;
  const known = problemCodes.some((code) => code === problem?.code);
  return known && typeof problem?.detail === "string" ? (problem as ProblemDocument) : undefined;
}

/**
 * Only what certainly happened before the first byte was sent. Codes are Node's; elsewhere nothing
 * is certain.
 */
function neverSent(error: unknown): boolean {
  const code = causeCode(error);
  return code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "UND_ERR_CONNECT_TIMEOUT";
}

function causeCode(error: unknown): string | undefined {
  const cause = error instanceof Error ? (error.cause as { readonly code?: unknown } | undefined) : undefined;
  return typeof cause?.code === "string" ? cause.code : undefined;
}

function reasonOf(error: unknown): string {
  return causeCode(error) ?? (error instanceof Error ? error.message : String(error));
}
