// The connection to the gateway: the stream of what happens, questions beside it, and the key,
// which this tab forgets when it is closed.
import type { Hello, RefusalNews, RefusalRow, State, WriteCounts } from "../src/page/messages.js";

export type Status = "connecting" | "live" | "lost" | "no key" | "refused";

const KEY = "palisade-key";
const KEPT_ROWS = 300;
const KEPT_SECONDS = 300;
const RETRY_FIRST_MS = 500;
const RETRY_LAST_MS = 5_000;
/** The gateway says something every second; a connection that is silent for so long is dead. */
const SILENCE_MS = 5_000;

/** What is known now. A new object whenever something has changed. */
export interface Known {
  readonly status: Status;
  /** Why, in the gateway's words. */
  readonly detail: string;
  readonly hello: Hello | undefined;
  readonly state: State | undefined;
  /** When `state` arrived, on the clock of `performance`. */
  readonly stateAt: number;
  /** Newest first. */
  readonly refusals: readonly RefusalRow[];
  /** Refused in each of the last seconds, the oldest first. */
  readonly writes: readonly WriteCounts[];
}

/** An answer of the gateway that is no success. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

const nothing: Known = {
  status: "connecting",
  detail: "",
  hello: undefined,
  state: undefined,
  stateAt: 0,
  refusals: [],
  writes: [],
};

export class Session {
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
    const connection = new AbortController();
    this.#connection = connection;
    this.#change({ status: this.#known.hello === undefined ? "connecting" : "lost" });
    void this.#follow(connection);
  }

  async get<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
    const response = await this.#ask(path, signal === undefined ? {} : { signal });
    return (await response.json()) as Answer;
  }

  async post<Answer>(path: string, body: object): Promise<Answer> {
    const headers = { "Content-Type": "application/json" };
    const response = await this.#ask(path, { method: "POST", headers, body: JSON.stringify(body) });
    return (await response.json()) as Answer;
  }

  async #ask(path: string, init: RequestInit): Promise<Response> {
    const credential = this.#key === "" ? {} : { Authorization: `Bearer ${this.#key}` };
    const response = await fetch(path, { cache: "no-store", credentials: "omit", ...init, headers: { ...init.headers, ...credential } });
    if (response.ok) return response;
    const problem = (await response.json().catch(() => ({}))) as { readonly detail?: string };
    throw new Refused(response.status, problem.detail ?? `The gateway answered ${response.status}.`);
  }

  async #follow(connection: AbortController): Promise<void> {
    let detail = "";
    try {
      const response = await this.#ask("live", { signal: connection.signal });
      await this.#read(response, connection);
    } catch (error) {
      if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
        this.#known = nothing;
        this.#change({ status: error.status === 401 && !this.hasKey ? "no key" : "refused", detail: error.message });
        return;
      }
      detail = error instanceof Refused ? error.message : "";
    }
    if (connection !== this.#connection) return;
    this.#change({ status: this.#known.hello === undefined ? "connecting" : "lost", detail });
    setTimeout(() => connection === this.#connection && this.connect(), this.#retryMs);
    this.#retryMs = Math.min(RETRY_LAST_MS, this.#retryMs * 2);
  }

  async #read(response: Response, connection: AbortController): Promise<void> {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (reader === undefined) return;
    let text = "";
    for (;;) {
      const silence = setTimeout(() => connection.abort(), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return;
      text += value;
      const events = text.split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) this.#take(event);
    }
  }

  #take(event: string): void {
    const name = /^event: (.*)$/m.exec(event)?.[1];
    const data = /^data: (.*)$/m.exec(event)?.[1];
    if (data === undefined) return;
    const message: unknown = JSON.parse(data);
    if (name === "hello") this.#begin(message as Hello);
    else if (name === "state") this.#takeState(message as State);
    else if (name === "refusals") this.#takeRefusals(message as RefusalNews);
  }

  #begin(hello: Hello): void {
    this.#retryMs = RETRY_FIRST_MS;
    this.#change({ status: "live", detail: "", hello, refusals: hello.refusals.entries, writes: hello.writes });
  }

  #takeState(state: State): void {
    const writes = state.writes === undefined ? {} : { writes: [...this.#known.writes, state.writes].slice(-KEPT_SECONDS) };
    this.#change({ state, stateAt: performance.now(), ...writes });
  }

  #takeRefusals({ entries }: RefusalNews): void {
    this.#change({ refusals: [...entries, ...this.#known.refusals].slice(0, KEPT_ROWS) });
  }

  #change(changes: Partial<Known>): void {
    this.#known = { ...this.#known, ...changes };
    for (const listener of this.#listeners) listener();
  }
}
