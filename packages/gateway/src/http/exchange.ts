// One request on its way to one answer: what is known about it so far, and whether its connection may still be answered by somebody else.
// Decides nothing; must stay cheap, one is made for every request.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { RequestHeaders } from "./request-headers.js";
import { nobody, type Principal } from "./scopes.js";

export class Exchange {
  readonly startedAt = performance.now();
  readonly requestId: string;
  /** Who asks; nobody until the credential has been looked at. */
  principal: Principal = nobody;
  /** Bytes of the body that count against the budget of the process until the answer is sent. */
  heldBytes = 0;
  /** For the log: what the request was about, once that is known. */
  resource: string | undefined;
  token: number | undefined;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly headers: RequestHeaders,
  ) {
    this.requestId = requestIdOf(headers.requestId);
  }
}

const working = Symbol("requests of this connection that are not answered yet");
const receiving = Symbol("the one of them whose body is being read");
interface TrackedSocket extends Socket {
  [working]?: number;
  [receiving]?: IncomingMessage | undefined;
}

export function beginWork(socket: Socket): void {
  const tracked: TrackedSocket = socket;
  tracked[working] = (tracked[working] ?? 0) + 1;
}

export function endWork(socket: Socket): void {
  const tracked: TrackedSocket = socket;
  tracked[working] = (tracked[working] ?? 1) - 1;
}

export function markReceiving(socket: Socket, request: IncomingMessage | undefined): void {
  (socket as TrackedSocket)[receiving] = request;
}

/** Nobody waits for an answer on this connection. */
export function isQuiet(socket: Socket): boolean {
  return ((socket as TrackedSocket)[working] ?? 0) === 0;
}

/**
 * An error of the parser or a timeout on a connection may be answered only if no earlier request is still being worked on: a pipelining client would take the 400 for
 * the answer to its write, which may well be applied (G3). A request whose body is incomplete can never be applied, so that one may be answered. "Complete" is the
 * parser's word: when garbage follows in the same packet, the parser fails before anybody has heard the end of the body.
 */
export function mustStaySilent(socket: Socket): boolean {
  const tracked: TrackedSocket = socket;
  const unanswered = tracked[working] ?? 0;
  return unanswered > 1 || (unanswered === 1 && tracked[receiving]?.complete !== false);
}

const processName = Math.random().toString(36).slice(2, 8);
let requestCount = 0;
const acceptableId = /^[A-Za-z0-9._:-]{1,128}$/;

/** The caller's own id where it is harmless, so that one id follows a request through several services. */
function requestIdOf(presented: string | undefined): string {
  if (presented !== undefined && acceptableId.test(presented)) return presented;
  requestCount += 1;
  return `${processName}-${requestCount.toString(36)}`;
}
