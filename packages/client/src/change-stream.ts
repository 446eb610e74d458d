// Accepted writes as an async iterator, over server-sent events. It reconnects by itself, from the
// last place that it was told, so nothing is told twice and nothing is left out.
import { GatewayError } from "./gateway-error.js";
import type { Change, Refusal } from "./results.js";
import { local, refusalOf } from "./transport.js";

export interface ChangeSource {
  readonly base: string;
  readonly apiKey: string | undefined;
  readonly fetch: typeof fetch;
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
}

interface ChangeRange {
  readonly prefix: string | undefined;
  readonly after: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** The gateway says something at least every ten seconds. */
const SILENCE_MS = 35_000;
/** Another try does not help. */
const lasting = new Set(["changes_gone", "query_invalid", "unauthenticated", "forbidden_scope", "not_found", "route_not_found"]);

/** Throws GatewayError when the gateway refuses for good, as with `changes_gone`. */
export async function* readChanges(source: ChangeSource, { prefix, after, signal }: ChangeRange): AsyncGenerator<Change, void, undefined> {
  const place = { position: after };
  for (let failures = 0; signal?.aborted !== true; failures += 1) {
    for await (const told of connection(source, { prefix, place, signal })) {
      if ("position" in told) yield told;
      else if (lasting.has(told.code)) throw new GatewayError("the stream of changes ended", told);
      if (!("code" in told)) failures = 0;
    }
    const longest = Math.min(source.longestPauseMs, source.firstPauseMs * 2 ** Math.min(failures, 20));
    await pause(longest * (0.5 + Math.random() / 2), signal);
  }
}

interface Connected {
  readonly prefix: string | undefined;
  /** Moves on as places are told. */
  readonly place: { position: number | undefined };
  readonly signal: AbortSignal | undefined;
}

/** One connection, until it ends: changes, or why there was none. */
async function* connection(source: ChangeSource, { prefix, place, signal }: Connected): AsyncGenerator<Change | Refusal> {
  const quiet = new TimeLimit(signal);
  try {
    const query = new URLSearchParams(prefix === undefined ? {} : { prefix });
    if (place.position !== undefined) query.set("after", String(place.position));
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (source.apiKey !== undefined) headers.authorization = `Bearer ${source.apiKey}`;
    const response = await source.fetch(`${source.base}/v1/changes?${query}`, { headers, signal: quiet.signal });
    if (response.status !== 200 || response.body === null) {
      yield refusalOf(source.base, response, await response.text());
      return;
    }
    let rest = "";
    const decoder = new TextDecoder();
    for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
      quiet.heard();
      const blocks = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const { event, id, data } = fieldsOf(block);
        if (event === "gone") yield local("changes_gone", "Changes after the last position are no longer kept.", "not_applied");
        if (event === "change" && data !== undefined) yield JSON.parse(data) as Change;
        if (id !== undefined) place.position = Number(id);
      }
    }
  } catch {
    // Lost, silent for too long, or aborted: the caller of this tries again, or ends.
  } finally {
    quiet.end();
  }
}

function fieldsOf(block: string): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
}

/** Ends a connection on which nothing is heard, and at the caller's signal. */
class TimeLimit {
  readonly #controller = new AbortController();
  readonly #given: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#given = signal;
    signal?.addEventListener("abort", this.#abort);
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  heard(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#abort, SILENCE_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#abort);
    this.#abort();
  }

  readonly #abort = (): void => this.#controller.abort();
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", settle);
      resolve();
    };
    const timer = setTimeout(settle, ms);
    if (signal?.aborted === true) settle();
    else signal?.addEventListener("abort", settle);
  });
}
