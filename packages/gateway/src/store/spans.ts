// Where tracing is attached. Until it is, each request and each statement costs one look at a
// field, and nothing of OpenTelemetry is imported. A statement bears no mark of its trace: a comment
// with it would make each another text, parsed and planned anew. Its span has the process id of the
// server process instead, by which the two are found from each other.
import type { IncomingMessage } from "node:http";

export interface RequestEnd {
  readonly status: number;
  /** `ok`, or the code of the problem. */
  readonly outcome: string;
  readonly requestId: string;
  readonly resource: string | undefined;
  readonly token: number | undefined;
  /** The fence that a refused token met. */
  readonly fence: number | undefined;
}

export interface RequestSpan {
  /** What the work does belongs to the request. */
  within<T>(work: () => T): T;
  end(how: RequestEnd): void;
}

/** The server process that executes a statement; undefined where it is not known. */
export interface ServerProcess {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly database?: string | undefined;
  readonly pid?: number | undefined;
}

export interface StatementSpan {
  end(server: ServerProcess, failure?: string): void;
}

export interface GatewaySpans {
  /** `path` is that of its route, as the description has it. */
  request(request: IncomingMessage, path: string | undefined): RequestSpan | undefined;
  /** The request that runs now, to be kept until its statement is sent. */
  current(): unknown;
  /** The statements of the work belong to the first of these requests, and are linked to all. */
  together<T>(requests: readonly unknown[], work: () => T): T;
  statement(name: string): StatementSpan | undefined;
}

export const tracing: { spans: GatewaySpans | undefined } = { spans: undefined };
