// What is known about the requests of one connection: which are unanswered, whose body is being
// read, and so whether the connection may be answered once more and when its last answer may end.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const working = Symbol("requests of this connection that are not answered yet");
const receiving = Symbol("the one of them whose body is being read");
const ending = Symbol("its last answer has been given");
const discarding = Symbol("the last one that was answered before it had arrived");
interface TrackedSocket extends Socket {
  [working]?: number;
  [receiving]?: IncomingMessage | undefined;
  [ending]?: true;
  [discarding]?: IncomingMessage;
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

/** The rest of this request is read and discarded, so that its end will come. */
export function markDiscarding(request: IncomingMessage): void {
  (request.socket as TrackedSocket)[discarding] = request;
}

function isBeingDiscarded(request: IncomingMessage): boolean {
  return (request.socket as TrackedSocket)[discarding] === request;
}

/** The answer that is about to leave says Connection: close. */
export function markEnding(socket: Socket): void {
  (socket as TrackedSocket)[ending] = true;
}

/**
 * While the gateway stops, each answer is the last one of its connection. A request behind it must
 * not be begun, because its own answer would never leave.
 */
export function canBeAnswered(socket: Socket): boolean {
  const tracked: TrackedSocket = socket;
  return tracked[ending] !== true && (tracked[working] ?? 0) <= 1;
}

/** No request of this connection is unanswered. */
export function isIdle(socket: Socket): boolean {
  return ((socket as TrackedSocket)[working] ?? 0) === 0;
}

/**
 * A parser error or a timeout on a connection may be answered only if no earlier request is
 * unanswered: a pipelining client would take the 400 for the answer to its write, which may well be
 * applied (G3). A request whose body is incomplete can never be applied, so that one may be
 * answered. "Complete" is the parser's word: when garbage follows in the same packet, the parser
 * fails before the end of the body is reported. A request that was answered before it had arrived
 * gets no second answer for not arriving.
 */
export function mustStaySilent(socket: Socket): boolean {
  const tracked: TrackedSocket = socket;
  const unanswered = tracked[working] ?? 0;
  if (unanswered === 0) return tracked[discarding]?.complete === false;
  return unanswered > 1 || (unanswered === 1 && tracked[receiving]?.complete !== false);
}

/**
 * Ends the last answer of a connection only after the client has sent its whole request
 * (half-close): ending earlier resets the connection, and a client that is still writing fails
 * without having read the answer. The header with the length is already written, so for the client
 * the answer is complete. A client that was never told to continue is not waited for.
 */
export function endResponse(response: ServerResponse, body: string | undefined): void {
  const { req: request, shouldKeepAlive } = response;
  if (shouldKeepAlive || request.complete || !isBeingDiscarded(request)) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  if (body !== undefined) response.write(body);
  request.once("end", () => response.end());
}
