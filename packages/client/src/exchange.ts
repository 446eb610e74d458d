// One HTTP request, sent once, and its complete answer: by fetch, which every runtime has. In Node
// without a fetch of the caller's own by node:http, for a third of the time (exchange-node.ts).

/** What is sent; `path` comes after the base. */
export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export interface Received {
  readonly status: number;
  /** The field of this name in lower case; null without one. */
  header(name: string): string | null;
  readonly text: string;
}

/**
 * Rejects where no complete answer came. `abort` is told how to end it early. Redirects are never
 * followed: one would send the credential and the write to a place the caller did not name.
 */
export type Exchange = (sent: Sent, abort: (end: () => void) => void) => Promise<Received>;

/** The exchange with the server of one base. */
export type OpenExchange = (base: string) => Exchange;

export const overFetch = (fetchWith: typeof fetch): OpenExchange => {
  return (base) =>
    async ({ path, ...sent }, abort) => {
      const controller = new AbortController();
      abort(() => controller.abort());
      const response = await fetchWith(base + path, { ...sent, body: sent.body ?? null, signal: controller.signal, redirect: "error" });
      return { status: response.status, header: (name) => response.headers.get(name), text: await response.text() };
    };
};

/** Where there is no node:http. */
export const openExchange: OpenExchange = (base) => overFetch(globalThis.fetch)(base);
