// The hand-written servers that the gateway is compared with: Express, Fastify and node:http in
// front of the same store. A program of its own; STYLE chooses the server.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import express from "express";
import fastify from "fastify";
import { openStore, type PlainStore } from "./plain-store.js";

const { DATABASE_URL: url = "", PORT = "0", POOL_SIZE = "20", STYLE = "express", FENCED = "no", BATCHED = "no" } = process.env;
const BODY_LIMIT = 1_000_000;
const PREFIX = "/v1/resources/";

interface Operation {
  readonly resource: string;
  readonly value: unknown;
}

const tokenOf = (header: string | readonly string[] | undefined): number => Number(header ?? 0);
const documentsOf = (operations: readonly Operation[], token: number) =>
  operations.map(({ resource, value }) => ({ resource, token, text: JSON.stringify(value) }));

function expressServer(store: PlainStore): Server {
  const app = express();
  app.disable("x-powered-by");
  app.use(express.json({ limit: BODY_LIMIT }));
  app.put("/v1/resources/:kind/:id", async (request, response) => {
    const resource = `${request.params.kind}/${request.params.id}`;
    const token = tokenOf(request.get("fencing-token"));
    const rev = await store.put({ resource, token, text: JSON.stringify(request.body) });
    if (rev === undefined) return void response.status(412).json({ code: "stale", resource });
    response.set("ETag", `"${rev}"`).json({ resource, rev: Number(rev) });
  });
  app.get("/v1/resources/:kind/:id", async (request, response) => {
    const found = await store.get(`${request.params.kind}/${request.params.id}`);
    if (found === undefined) return void response.status(404).json({ code: "not_found" });
    response.set("ETag", `"${found.rev}"`).json(found.value);
  });
  return app.listen(Number(PORT), "127.0.0.1");
}

async function fastifyServer(store: PlainStore): Promise<Server> {
  const app = fastify({ bodyLimit: BODY_LIMIT });
  interface Path {
    readonly Params: { readonly kind: string; readonly id: string };
  }
  app.put<Path>("/v1/resources/:kind/:id", async (request, reply) => {
    const resource = `${request.params.kind}/${request.params.id}`;
    const token = tokenOf(request.headers["fencing-token"]);
    const rev = await store.put({ resource, token, text: JSON.stringify(request.body) });
    if (rev === undefined) return reply.code(412).send({ code: "stale", resource });
    return reply.header("ETag", `"${rev}"`).send({ resource, rev: Number(rev) });
  });
  app.get<Path>("/v1/resources/:kind/:id", async (request, reply) => {
    const found = await store.get(`${request.params.kind}/${request.params.id}`);
    if (found === undefined) return reply.code(404).send({ code: "not_found" });
    return reply.header("ETag", `"${found.rev}"`).send(found.value);
  });
  await app.listen({ port: Number(PORT), host: "127.0.0.1" });
  return app.server;
}

function httpServer(store: PlainStore): Server {
  const server = createServer(async (request, response) => {
    try {
      await handle(store, request, response);
    } catch (error) {
      answer(response, { status: 500 }, { code: String(error) });
    }
  });
  return server.listen(Number(PORT), "127.0.0.1");
}

async function handle(store: PlainStore, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? "";
  const token = tokenOf(request.headers["fencing-token"]);
  if (request.method === "POST" && path === "/v1/transactions") {
    const { operations } = JSON.parse(await bodyOf(request)) as { readonly operations: readonly Operation[] };
    const outcome = await store.putAll(documentsOf(operations, token));
    return answer(response, { status: outcome === "stored" ? 200 : 412 }, { outcome });
  }
  if (!path.startsWith(PREFIX)) return answer(response, { status: 404 }, { code: "not_found" });
  const resource = path.slice(PREFIX.length);
  if (request.method === "PUT") {
    const text = await bodyOf(request);
    JSON.parse(text); // Refused here if it is no JSON, as by the others.
    const rev = await store.put({ resource, token, text });
    return rev === undefined
      ? answer(response, { status: 412 }, { code: "stale", resource })
      : answer(response, { status: 200, rev }, { resource, rev: Number(rev) });
  }
  const found = await store.get(resource);
  return found === undefined
    ? answer(response, { status: 404 }, { code: "not_found" })
    : send(response, { status: 200, rev: found.rev }, String(found.value));
}

interface Answer {
  readonly status: number;
  readonly rev?: string;
}

function answer(response: ServerResponse, how: Answer, body: object): void {
  send(response, how, JSON.stringify(body));
}

function send(response: ServerResponse, { status, rev }: Answer, text: string): void {
  const etag = rev === undefined ? {} : { ETag: `"${rev}"` };
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text), ...etag });
  response.end(text);
}

function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => resolve(Buffer.concat(parts).toString()));
    request.on("error", reject);
  });
}

const store = await openStore({
  url,
  poolSize: Number(POOL_SIZE),
  readsText: STYLE === "http",
  isFenced: FENCED === "yes",
  isBatched: BATCHED === "yes",
});
const server = STYLE === "express" ? expressServer(store) : STYLE === "fastify" ? await fastifyServer(store) : httpServer(store);
process.on("SIGTERM", () => {
  server.close(() => void store.close());
  server.closeAllConnections();
});
