// Load on an HTTP server from this process over many connections, and its rates and latencies.
import { createRequire } from "node:module";

interface AutocannonResult {
  readonly requests: { readonly average: number; readonly total: number };
  readonly latency: { readonly p50: number; readonly p97_5: number; readonly p99: number };
  readonly "2xx": number;
  readonly non2xx: number;
  readonly errors: number;
  readonly statusCodeStats: Readonly<Record<string, { readonly count: number }>>;
}

interface AutocannonClient {
  setRequests(requests: readonly object[]): void;
}

const autocannon = createRequire(import.meta.url)("autocannon") as (options: object) => PromiseLike<AutocannonResult>;

export interface Load {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** The requests of one connection, sent over and over. */
  readonly requestsOf: (connection: number) => readonly Request[];
  /** The status that every answer must have. */
  readonly expect: "2xx" | number;
}

export interface Request {
  readonly method: "GET" | "PUT" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Changes the request each time it is sent. */
  readonly setupRequest?: (request: Request) => Request;
}

export interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export async function load({ url, connections, seconds, requestsOf, expect }: Load): Promise<Measured> {
  let connection = 0;
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    setupClient: (client: AutocannonClient) => client.setRequests(requestsOf(connection++)),
  });
  const done = expect === "2xx" ? result["2xx"] : (result.statusCodeStats[String(expect)]?.count ?? 0);
  const others = result["2xx"] + result.non2xx - done;
  if (done === 0 || others > 0 || result.errors > 0) {
    const statuses = JSON.stringify(result.statusCodeStats);
    throw new Error(`${url}: ${done} answers as expected, ${others} others, ${result.errors} errors: ${statuses}`);
  }
  return { perSecond: result.requests.average, p50Ms: result.latency.p50, p99Ms: result.latency.p99 };
}
