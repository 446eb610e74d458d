// A gateway that serves the operator's page, with a key for each kind of caller, and its stream.
import { type GatewayConfig, makeApiKey } from "@palisade/gateway";
import type { Hello, RefusedWrite, State } from "../../src/messages.js";

export const scopesOf = {
  operator: ["observe:", "admin:"],
  observer: ["observe:"],
  ofOrders: ["observe:orders/", "admin:orders/"],
  worker: ["read:", "write:", "seal:"],
} as const;
export type Caller = keyof typeof scopesOf;
export type Keys = Readonly<Record<Caller, string>>;

/** The keys, and the settings of a gateway that knows them. */
export function pageSettings(): { readonly keys: Keys; readonly settings: Partial<GatewayConfig> } {
  const made = Object.entries(scopesOf).map(([id, scopes]) => ({ id, scopes, ...makeApiKey() }));
  const keys = Object.fromEntries(made.map(({ id, key }) => [id, key])) as unknown as Keys;
  const apiKeys = made.map(({ id, scopes, sha256 }) => ({ id, scopes: [...scopes], sha256 }));
  return { keys, settings: { apiKeys, page: "on", history: "on" } };
}

export interface PageClient {
  get(path: string): Promise<Response>;
  post(path: string, body: object): Promise<Response>;
  /** The stream until `leave` is called, event by event. */
  live(): Promise<LiveStream>;
}

export function pageClient(adminUrl: string, key: string | undefined): PageClient {
  const headers: Record<string, string> = key === undefined ? {} : { Authorization: `Bearer ${key}` };
  const json = { ...headers, "Content-Type": "application/json" };
  return {
    get: (path) => fetch(`${adminUrl}/page/${path}`, { headers }),
    post: (path, body) => fetch(`${adminUrl}/page/${path}`, { method: "POST", headers: json, body: JSON.stringify(body) }),
    async live() {
      const left = new AbortController();
      const response = await fetch(`${adminUrl}/page/live`, { headers, signal: left.signal });
      if (!response.ok || response.body === null) throw new Error(`the stream was answered ${response.status}`);
      return new LiveStream(response.body, left);
    },
  };
}

/**
 * In how many looks, ten milliseconds apart, it is so: a limit of time for what one process does, which
 * does not count the time in which a busy machine lets nobody run.
 */
export async function looksUntil(isSo: () => boolean | Promise<boolean>): Promise<number> {
  let looks = 0;
  for (; !(await isSo()); looks += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  return looks;
}

export class LiveStream implements AsyncDisposable {
  hello: Hello | undefined;
  state: State | undefined;
  /** The rows of each event. */
  readonly refusals: (readonly RefusedWrite[])[] = [];
  /** Everything that came, as text. */
  text = "";
  hasEnded = false;
  readonly #left: AbortController;
  readonly #done: Promise<void>;

  constructor(body: ReadableStream<Uint8Array>, left: AbortController) {
    this.#left = left;
    this.#done = this.#read(body).catch(() => undefined);
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      const text = decoder.decode(chunk, { stream: true });
      this.text += text;
      const events = (rest + text).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) this.#take(event);
    }
    this.hasEnded = true;
  }

  #take(event: string): void {
    const [, name, data = "{}"] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
    if (name === "hello") this.hello = JSON.parse(data) as Hello;
    if (name === "state") this.state = JSON.parse(data) as State;
    if (name === "refusals") this.refusals.push(JSON.parse(data) as readonly RefusedWrite[]);
  }

  async leave(): Promise<void> {
    this.#left.abort();
    await this.#done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }
}
