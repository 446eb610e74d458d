// Creates requests and responses with Express' own prototypes. Express sets the prototype of each
// one on arrival (Object.setPrototypeOf), and V8 then treats the object as one of a kind: measured
// on Node 20 with this gateway, 14 000 requests per second with it and 35 000 without. If the
// prototype is already the right one, that call does nothing. An application mounted in another
// server works as before, only slower.
import { IncomingMessage, type ServerOptions, ServerResponse } from "node:http";
import type { Express } from "express";

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
