// One request, sent once, under one timeout, to one answer or one refusal that says whether
// something may have changed.
import { type Expected, local, readAnswer, type Success } from "./answer.js";
import type { OpenExchange } from "./exchange.js";
import type { Refusal } from "./results.js";

/** What a call is about. */
export interface CallSubject {
  /** The method of the client. */
  readonly operation: string;
  readonly resource?: string | undefined;
  readonly token?: number | undefined;
}

export interface Call {
  readonly subject: CallSubject;
  readonly expects: Expected;
  readonly method: "GET" | "PUT" | "PATCH" | "DELETE" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
}

export type Transport = (call: Call) => Promise<Success | Refusal>;

const redirects = new Set([301, 302, 303, 307, 308]);

export function createTransport(base: string, apiKey: string | undefined, open: OpenExchange): Transport {
  const authorization: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const exchange = open(base);
  const redirected = local("answer_not_understood", `${base} redirects, which is not followed. Is it the gateway's API?`, "unknown");
  return async (call) => {
    const isGivenUp = (): boolean => call.signal?.aborted === true;
    if (isGivenUp()) return local("aborted", "The call was given up by its caller before it was sent.", "not_applied");
    const limit = new Limit(call);
    try {
      const { subject, expects, method, path, body } = call;
      const answer = await exchange({ method, path, headers: { ...authorization, ...call.headers }, body }, limit.onReached);
      if (redirects.has(answer.status)) return redirected;
      return readAnswer({ base, resource: subject.resource, expects }, answer);
    } catch (error) {
      if (isGivenUp()) return local("aborted", "The call was given up by its caller.", "unknown");
      // fetch has no code for it; in Node it is in the words of the cause.
      if (/redirect/i.test(reasonOf(error))) return redirected;
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
  readonly #given: AbortSignal | undefined;
  readonly #timer: ReturnType<typeof setTimeout>;
  #end: () => void = () => {};
  isReached = false;

  constructor({ signal, timeoutMs }: Pick<Call, "signal" | "timeoutMs">) {
    this.#given = signal;
    this.#timer = setTimeout(() => {
      this.isReached = true;
      this.#end();
    }, timeoutMs);
    signal?.addEventListener("abort", this.#giveUp);
  }

  readonly onReached = (end: () => void): void => {
    this.#end = end;
  };

  lift(): void {
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#giveUp);
  }

  readonly #giveUp = (): void => this.#end();
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
  if (!(error instanceof Error)) return undefined;
  // fetch tells it of its cause, node:http of the error itself.
  const { code } = (error.cause ?? error) as { readonly code?: unknown };
  return typeof code === "string" ? code : undefined;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return causeCode(error) ?? (cause instanceof Error ? cause.message : error.message);
}
