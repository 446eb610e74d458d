// What is known about the requests of one connection: which are unanswered, whose body is being
// read, and so which may be begun, whether the connection may be answered once more, and when its
// last answer may end.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const working = Symbol("requests of this connection that are not answered yet, in their order");
const waiting = Symbol("what those of them do that wait for all before them");
const receiving = Symbol("the one of them whose body is being read");
const sending = Symbol("how many of its answers are handed to it slice by slice");
const ending = Symbol("its last answer has been given");
const discarding = Symbol("the last one that was answered before it had arrived");
interface TrackedSocket extends Socket {
  [working]?: Set<IncomingMessage>;
  [waiting]?: Map<IncomingMessage, () => void>;
  [receiving]?: IncomingMessage | undefined;
  [sending]?: number;
  [ending]?: true;
  [discarding]?: IncomingMessage;
}

export function beginWork(request: IncomingMessage): void {
  const tracked: TrackedSocket = request.socket;
  tracked[working] ??= new Set();
  tracked[working].add(request);
}

export function endWork(request: IncomingMessage): void {
  const tracked: TrackedSocket = request.socket;
  tracked[working]?.delete(request);
  if (tracked[waiting] === undefined) return;
  tracked[waiting].delete(request);
  const [next] = tracked[working] ?? [];
  if (next !== undefined) tracked[waiting].get(next)?.();
}

const unansweredOn = (socket: Socket): number => (socket as TrackedSocket)[working]?.size ?? 0;

const SAFE: ReadonlySet<string | undefined> = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Pipelined requests take effect in the order in which they were sent: one that may change something
 * waits until all before it on its connection are answered, or the connection is closed. Undefined
 * where there is nothing to wait for.
 */
export function itsTurn(request: IncomingMessage): Promise<void> | undefined {
  const tracked: TrackedSocket = request.socket;
  if (SAFE.has(request.method) || tracked[working] === undefined || tracked[working].size === 1) return undefined;
  const [first] = tracked[working];
  if (first === request) return undefined;
  const all = tracked[waiting] ?? waitingOn(tracked);
  return tracked.closed ? Promise.resolve() : new Promise((resolve) => void all.set(request, resolve));
}

function waitingOn(socket: TrackedSocket): Map<IncomingMessage, () => void> {
  const all = new Map<IncomingMessage, () => void>();
  socket[waiting] = all;
  socket.once("close", () => {
    for (const resume of all.values()) resume();
  });
  return all;
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
  return tracked[ending] !== true && unansweredOn(socket) <= 1;
}

/** No request of this connection is unanswered. */
export function isIdle(socket: Socket): boolean {
  return unansweredOn(socket) === 0;
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
  const unanswered = unansweredOn(socket);
  if (unanswered === 0) return tracked[discarding]?.complete === false;
  return unanswered > 1 || (unanswered === 1 && tracked[receiving]?.complete !== false);
}

/** What is handed to a socket at a time of a long answer, so that it can be seen to take it. */
export const SLICE_BYTES = 64 * 1024;

/** `body`: as text, or a long one as bytes. */
export function sendBody(response: ServerResponse, body: string | readonly Buffer[] | undefined): void {
  if (typeof body !== "object") {
    endResponse(response, body);
    return;
  }
  const slices = slicesOf(body);
  const socket: TrackedSocket = response.req.socket;
  socket[sending] = (socket[sending] ?? 0) + 1;
  // The next one in the next turn of the event loop, or one caller that takes them fast would be alone in this one.
  const goOn = (): void => {
    if (response.destroyed) return;
    for (let slice = slices.next(); slice.done !== true; slice = slices.next()) {
      if (response.write(slice.value)) continue;
      response.once("drain", () => setImmediate(goOn));
      return;
    }
    socket[sending] = (socket[sending] ?? 1) - 1;
    endResponse(response, undefined);
  };
  goOn();
}

/** It has taken all of its answers. */
export function isSent(socket: Socket): boolean {
  return ((socket as TrackedSocket)[sending] ?? 0) === 0 && socket.writableLength === 0;
}

function* slicesOf(body: readonly Buffer[]): Generator<Buffer, undefined> {
  for (const part of body) for (let at = 0; at < part.length; at += SLICE_BYTES) yield part.subarray(at, at + SLICE_BYTES);
}

/**
 * Ends the last answer of a connection only after the client has sent its whole request
 * (half-close): ending earlier resets the connection, and a client that is still writing fails
 * without having read the answer. The header with the length is already written, so for the client
 * the answer is complete. A client that was never told to continue is not waited for.
 */
function endResponse(response: ServerResponse, body: string | undefined): void {
  const { req: request, shouldKeepAlive } = response;
  if (shouldKeepAlive || request.complete || !isBeingDiscarded(request)) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  if (body !== undefined) response.write(body);
  request.once("end", () => response.end());
}
