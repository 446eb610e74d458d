// The connection to the gateway: the stream of what happens, questions beside it, and the key, which
// this tab forgets when it is closed.
import type { Events, Hello, RefusedWrite, State, WriteCounts } from "../src/messages.js";

const KEY = "palisade-key";
const KEPT_ROWS = 300;
const KEPT_SECONDS = 300;
const RETRY_FIRST_MS = 500;
const RETRY_LAST_MS = 5_000;
/** The gateway says something every second; a connection that is silent for so long is dead. */
const SILENCE_MS = 5_000;

/** What is known now. A new object whenever something has changed. */
export interface Known {
  readonly status: "connecting" | "live" | "lost" | "no key" | "refused";
  /** Why, in the gateway's words. */
  readonly detail: string;
  readonly hello: Hello | undefined;
  readonly state: State | undefined;
  /** When `state` arrived, on the clock of `performance`. */
  readonly stateAt: number;
  /** Newest first. */
  readonly refusals: readonly RefusedWrite[];
  /** What became of writes in each of the last seconds, the oldest first. */
  readonly writes: readonly WriteCounts[];
}

const nothing: Known = { status: "connecting", detail: "", hello: undefined, state: undefined, stateAt: 0, refusals: [], writes: [] };

class Session {
  #known = nothing;
  readonly #listeners = new Set<() => void>();
  #key = sessionStorage.getItem(KEY) ?? "";
  #connection: AbortController | undefined;
  #retryMs = RETRY_FIRST_MS;

  get known(): Known {
    return this.#known;
  }

  get hasKey(): boolean {
    return this.#key !== "";
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** With another key, or none. */
  use(key: string): void {
    this.#key = key.trim();
    if (this.#key === "") sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, this.#key);
    this.#known = nothing;
    this.connect();
  }

  connect(): void {
    this.#connection?.abort();
    this.#connection = new AbortController();
    this.#change({ status: this.#known.hello === undefined ? "connecting" : "lost" });
    void this.#follow(this.#connection);
  }

  /** Rejects with the gateway's words where it refuses. */
  async ask<Answer>(path: string, init: RequestInit): Promise<Answer> {
    const response = await this.#fetch(path, init);
    if (!response.ok) throw new Error(await faultOf(response));
    return (await response.json()) as Answer;
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.body === undefined ? {} : { "Content-Type": "application/json" });
    if (this.hasKey) headers.set("Authorization", `Bearer ${this.#key}`);
    return fetch(path, { cache: "no-store", credentials: "omit", ...init, headers });
  }

  async #follow(connection: AbortController): Promise<void> {
    let detail = "";
    try {
      const response = await this.#fetch("live", { signal: connection.signal });
      if (response.ok) await this.#read(response, connection);
      else detail = await faultOf(response);
      if (response.status === 401 || response.status === 403) {
        this.#known = nothing;
        this.#change({ status: response.status === 401 && !this.hasKey ? "no key" : "refused", detail });
        return;
      }
    } catch {} // It was lost.
    if (connection !== this.#connection) return;
    this.#change({ status: this.#known.hello === undefined ? "connecting" : "lost", detail });
    setTimeout(() => connection === this.#connection && this.connect(), this.#retryMs);
    this.#retryMs = Math.min(RETRY_LAST_MS, this.#retryMs * 2);
  }

  async #read(response: Response, connection: AbortController): Promise<void> {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (reader !== undefined) {
      const silence = setTimeout(() => connection.abort(), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return;
      const events = (text + value).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const [, name = "", data = "{}"] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
        this.#take({ [name]: JSON.parse(data) });
      }
    }
  }

  #take({ hello, state, refusals }: Partial<Events>): void {
    const { writes, refusals: before } = this.#known;
    if (hello !== undefined) {
      this.#retryMs = RETRY_FIRST_MS;
      this.#change({ status: "live", detail: "", hello, refusals: hello.refusals, writes: hello.writes });
    }
    if (state !== undefined) this.#change({ state, stateAt: performance.now() });
    if (state?.writes !== undefined) this.#change({ writes: [...writes, state.writes].slice(-KEPT_SECONDS) });
    if (refusals !== undefined) {
      const told = new Set(refusals.map(refusalKey));
      this.#change({ refusals: [...refusals, ...before.filter((row) => !told.has(refusalKey(row)))].slice(0, KEPT_ROWS) });
    }
  }

  #change(changes: Partial<Known>): void {
    this.#known = { ...this.#known, ...changes };
    for (const listener of this.#listeners) listener();
  }
}

/** What makes two of them equal: told again, with a higher number, it takes the place of what was told before. */
export function refusalKey({ resource, code, presentedToken, currentToken, caller, address }: RefusedWrite): string {
  return [resource, code, presentedToken, currentToken, caller, address].join("\n");
}

async function faultOf(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => ({}))) as { readonly detail?: string };
  return problem.detail ?? `The gateway answered ${response.status}.`;
}

/** Of this tab. */
export const session = new Session();
