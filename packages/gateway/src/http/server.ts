// The HTTP server around the application: its limits in time and number, and an answer for bytes
// that never become a request. Such an answer is held back while an earlier request is unanswered
// (see connection-state.ts).
import { createServer, IncomingMessage, type Server, type ServerOptions, ServerResponse } from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import type { Express } from "express";
import type { ServerLimits } from "../limits.js";
import { type Log, levelOf } from "../observe/log.js";
import { awaitsContinue } from "./body.js";
import { isIdle, isSent, mustStaySilent } from "./connection-state.js";
import { Problem, rawProblem, sendProblem } from "./problems.js";
import { RequestContext, requestIdOf } from "./request.js";
import { allowedAt, RESOURCES } from "./routes.js";

export interface GatewayServer extends Server {
  /**
   * Accepts no further connection and leaves those there are alone; resolves when the last one has
   * ended. Node's own close() ends idle ones at once, on which a request may be under way.
   */
  stopListening(): Promise<void>;
  /** Resolves when no connection is left, or after `limitMs`. */
  allClosed(limitMs: number): Promise<void>;
  /**
   * Ends the connections without an unanswered request, each once it has taken its answers. Node's own
   * closeIdleConnections spares those that never sent a request, and cuts answers.
   */
  closeIdleSockets(): void;
}

export function createGatewayServer(app: Express, limits: ServerLimits & { readonly idleTimeoutMs: number }, log: Log): GatewayServer {
  const server = createServer(
    {
      ...httpClassesFor(app),
      headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      // How often Node looks for overdue requests. Its default of 30 s would make the two timeouts
      // above meaningless.
      connectionsCheckingInterval: Math.min(1_000, Math.ceil(limits.requestTimeoutMs / 4)),
      maxHeaderSize: 32 * 1024,
      noDelay: true,
      // Node's own refusal is no problem document; the gateway looks itself.
      requireHostHeader: false,
    },
    app,
  );
  // Node would otherwise keep the first 2 000 header lines and drop the rest; without a limit here,
  // too many are counted and refused. Their size is bounded above.
  server.maxHeadersCount = 0;
  server.setTimeout(limits.idleTimeoutMs);
  // A client that has sent everything may close its half of the connection and still expects the
  // answer.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on("checkContinue", (request, response) => {
    awaitsContinue.add(request);
    app(request, response);
  });
  server.on("checkExpectation", (request, response) => {
    const { requestId } = new RequestContext(request, response);
    response.shouldKeepAlive = false;
    sendProblem(response, new Problem("expectation_failed", "Only Expect: 100-continue is known."), requestId);
  });
  const refuse = (socket: Socket, problem: Problem): void => {
    const requestId = requestIdOf(undefined);
    const { code: outcome, status } = problem;
    log[levelOf(outcome)]({ requestId, outcome, status, address: socket.remoteAddress }, "refused");
    socket.end(rawProblem(problem, requestId), () => socket.destroy());
  };
  // In the next turn of the event loop: a refusal that waits for nothing was given by then, and is
  // not lost with the connection.
  server.on("clientError", (error: NodeJS.ErrnoException, stream) =>
    setImmediate(() => {
      const socket = stream as Socket;
      if (error.code === "ECONNRESET" || !socket.writable || mustStaySilent(socket)) socket.destroy();
      else refuse(socket, problemOf(error));
    }),
  );
  server.on("connect", (_request: IncomingMessage, stream) => refuse(stream as Socket, notAllowed));
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    if (sockets.size > limits.maxConnections) makeRoom();
    socket.once("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0) onAllClosed();
    });
  });
  // The oldest on which nothing is asked; the new one itself where there is no other.
  const makeRoom = (): void => {
    for (const socket of sockets) {
      if (!isIdle(socket)) continue;
      sockets.delete(socket);
      socket.destroy();
      return;
    }
  };
  let onAllClosed = (): void => undefined;
  return Object.assign(server, {
    stopListening: () =>
      new Promise<void>((resolve) => {
        NetServer.prototype.close.call(server, () => resolve());
      }),
    allClosed: (limitMs: number) =>
      new Promise<void>((resolve) => {
        if (sockets.size === 0) return resolve();
        const timer = setTimeout(resolve, limitMs);
        onAllClosed = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
    closeIdleSockets: () => {
      for (const socket of sockets) closeOnceSent(socket);
    },
  });
}

const SENT_YET_MS = 20;

function closeOnceSent(socket: Socket): void {
  if (socket.destroyed || !isIdle(socket)) return; // The answer to come is its last one.
  if (isSent(socket)) socket.destroy();
  else setTimeout(closeOnceSent, SENT_YET_MS, socket).unref();
}

const notAllowed = new Problem("method_not_allowed", "There is no such method here.", { allow: allowedAt(RESOURCES) });
const malformed = new Problem("request_malformed", "The request breaks the grammar of HTTP/1.1 or ended too early.");

function problemOf(error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }): Problem {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return new Problem("headers_too_many", "The header of the request is too large.");
    case "HPE_INVALID_METHOD":
      return /^[A-Z-]{1,32} \//.test(String(error.rawPacket?.subarray(0, 40))) ? notAllowed : malformed;
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Problem("request_timeout", "The request did not arrive in time.");
    default:
      return malformed;
  }
}

// A server begins to listen, says where, and ends.

export function listenOn(server: Server, place: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(place, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Resolves as well for a server that never listened. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Of a server that listens. */
export function urlOf(server: Server): string {
  const { family, address, port } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

// Creates requests and responses with Express' own prototypes. Express sets the prototype of each
// one on arrival (Object.setPrototypeOf), and V8 then treats the object as one of a kind: measured
// on Node 20 with this gateway, 14 000 requests per second with it and 35 000 without. If the
// prototype is already the right one, that call does nothing. An application mounted in another
// server works as before, only slower.

type Classes = Pick<ServerOptions, "IncomingMessage" | "ServerResponse">;

/** The classes to give to http.createServer. */
export function httpClassesFor(app: Express): Classes {
  class BornRequest extends IncomingMessage {}
  class BornResponse extends ServerResponse {}
  // These stand in front of Express' own objects, which keep everything an application may have put
  // on them.
  Object.setPrototypeOf(BornRequest.prototype, app.request);
  Object.setPrototypeOf(BornResponse.prototype, app.response);
  app.request = BornRequest.prototype as typeof app.request;
  app.response = BornResponse.prototype as typeof app.response;
  return { IncomingMessage: BornRequest, ServerResponse: BornResponse as typeof ServerResponse };
}
