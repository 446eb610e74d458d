/// <reference types="node" />
// The exchange of Node: connections that are kept, one request at a time on each. fetch makes objects
// and streams for every call that cost more than the gateway's own work.
import * as http from "node:http";
import * as https from "node:https";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { OpenExchange, Received } from "./exchange.js";

/** Less than any server keeps a connection without a request: one that closes meanwhile loses a write. */
const IDLE_MS = 4_000;
const kept = { keepAlive: true, timeout: IDLE_MS };
/** Shared by all clients of the process; an idle connection does not keep it running. */
const ways = {
  "http:": { request: http.request, agent: new http.Agent(kept) },
  "https:": { request: https.request, agent: new https.Agent(kept) },
};
/** A proxy may compress what the gateway sent. */
const decoders: Readonly<Record<string, (bytes: Buffer) => Promise<Buffer>>> = {
  gzip: promisify<Buffer, Buffer>(gunzip),
  deflate: promisify<Buffer, Buffer>(inflate),
  br: promisify<Buffer, Buffer>(brotliDecompress),
};
const accepted = { "accept-encoding": "gzip, deflate, br" };

export const openExchange: OpenExchange = (base) => {
  const { protocol, hostname, port, pathname } = new URL(base);
  const { request, agent } = ways[protocol as keyof typeof ways];
  const to = { agent, host: hostname.replace(/^\[(.*)\]$/, "$1"), port };
  const prefix = pathname.replace(/\/$/, "");
  return ({ method, path, headers, body }, abort) =>
    new Promise((resolve, reject) => {
      let isComplete = false;
      const sent = request({ ...to, method, path: prefix + path, headers: { ...accepted, ...headers } });
      abort(() => sent.destroy());
      sent.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          isComplete = true;
          resolve(received(response, chunks));
        });
        response.on("error", reject);
      });
      sent.on("error", reject);
      // To make an error takes as long as to read the answer.
      sent.on("close", () => isComplete || reject(new Error("the connection was closed before the answer was complete")));
      sent.end(body);
    });
};

function received(response: http.IncomingMessage, chunks: readonly Buffer[]): Received | Promise<Received> {
  const bytes = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
  const { headersDistinct, statusCode = 0 } = response;
  const decode = decoders[headersDistinct["content-encoding"]?.join(", ") ?? ""];
  const header = (name: string): string | null => headersDistinct[name]?.join(", ") ?? null;
  const read = (text: Buffer): Received => ({ status: statusCode, header, text: text.toString() });
  return decode === undefined || bytes.length === 0 ? read(bytes) : decode(bytes).then(read);
}
