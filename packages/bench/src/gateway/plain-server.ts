// The hand-written servers that the gateway is compared with: Express, Fastify and node:http in front of what a team
// writes by hand: one upsert for each request, with or without the comparison of a token; the same for many requests in
// one statement; and a transaction of many rows as one statement. A program of its own; STYLE chooses the server.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import express from "express";
import fastify from "fastify";
import pg from "pg";

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

interface Document {
  readonly resource: string;
  readonly token: number;
  /** JSON. */
  readonly text: string;
}

/** The new revision, or undefined where the token is lower than the stored one. */
type Stored = string | undefined;

interface PlainStore {
  put(document: Document): Promise<Stored>;
  /** The value as pg parses it, or its text. */
  get(resource: string): Promise<{ readonly value: unknown; readonly rev: string } | undefined>;
  /** All or nothing. */
  putAll(documents: readonly Document[]): Promise<"stored" | "refused">;
  close(): Promise<void>;
}

interface StoreOptions {
  readonly url: string;
  readonly poolSize: number;
  /** Whether a token below the stored one is refused. */
  readonly isFenced: boolean;
  /** Whether the requests that wait share a statement. */
  readonly isBatched: boolean;
  /** Whether documents are read as text, without being parsed. */
  readonly readsText: boolean;
}

const SCHEMA = `create table if not exists documents
    (resource text primary key, value jsonb not null, token bigint not null, rev bigint not null default 1) with (fillfactor = 80);
  create or replace function refuse() returns bigint language plpgsql as $$ begin raise exception 'stale' using errcode = 'P0412'; end $$`;

const REFUSED = "P0412";
const STATEMENTS_IN_FLIGHT = 4;
const MAX_ROWS = 200;

const update = "on conflict (resource) do update set value = excluded.value, token = excluded.token, rev = stored.rev + 1";
const fence = "where stored.token <= excluded.token";

interface Waiting {
  readonly document: Document;
  resolve(stored: Stored): void;
  reject(error: unknown): void;
}

async function openStore({ url, poolSize, isFenced, isBatched, readsText }: StoreOptions): Promise<PlainStore> {
  const pool = new pg.Pool({ connectionString: url, max: poolSize });
  await pool.query(SCHEMA);
  const where = isFenced ? fence : "";
  const one = {
    name: "put",
    text: `insert into documents as stored (resource, value, token) values ($1, $2, $3) ${update} ${where} returning rev`,
  };
  const many = {
    name: "put-many",
    text: `insert into documents as stored (resource, value, token) select * from unnest($1::text[], $2::jsonb[], $3::bigint[]) ${update} ${where} returning resource, rev`,
  };
  const all = {
    name: "put-all",
    text: `with written as (${many.text}) select case when (select count(*) from written) < $4::bigint then refuse() else 0 end`,
  };
  const put = async ({ resource, token, text }: Document): Promise<Stored> => {
    const { rows } = await pool.query<{ rev: string }>({ ...one, values: [resource, text, token] });
    return rows[0]?.rev;
  };
  const putMany = async (documents: readonly Document[]): Promise<ReadonlyMap<string, string>> => {
    const { rows } = await pool.query<{ resource: string; rev: string }>({ ...many, values: columnsOf(documents) });
    return new Map(rows.map(({ resource, rev }) => [resource, rev]));
  };
  return {
    put: isBatched ? batched(putMany) : put,
    async get(resource) {
      const text = `select value${readsText ? "::text" : ""}, rev from documents where resource = $1`;
      const { rows } = await pool.query<{ value: unknown; rev: string }>({ name: "get", text, values: [resource] });
      return rows[0];
    },
    async putAll(documents) {
      try {
        await pool.query({ ...all, values: [...columnsOf(documents), documents.length] });
        return "stored";
      } catch (error) {
        if ((error as { code?: string }).code === REFUSED) return "refused";
        throw error;
      }
    },
    close: () => pool.end(),
  };
}

function columnsOf(documents: readonly Document[]): unknown[][] {
  return [documents.map(({ resource }) => resource), documents.map(({ text }) => text), documents.map(({ token }) => token)];
}

/** Of the same resource the last one of a batch is written; its revision answers all of them. */
function batched(putMany: (documents: readonly Document[]) => Promise<ReadonlyMap<string, string>>): PlainStore["put"] {
  const queue: Waiting[] = [];
  let inFlight = 0;
  const flush = async (): Promise<void> => {
    const batch = queue.splice(0, MAX_ROWS);
    if (batch.length === 0) return;
    inFlight += 1;
    const last = new Map(batch.map(({ document }) => [document.resource, document]));
    try {
      // In one order everywhere: two statements of the same rows must not wait for each other.
      const stored = await putMany([...last.values()].sort((a, b) => (a.resource < b.resource ? -1 : 1)));
      for (const { document, resolve } of batch) resolve(stored.get(document.resource));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    inFlight -= 1;
    if (queue.length > 0) void flush();
  };
  return (document) =>
    new Promise((resolve, reject) => {
      queue.push({ document, resolve, reject });
      // Once all requests of this turn of the event loop are read.
      if (queue.length === 1) setImmediate(() => inFlight < STATEMENTS_IN_FLIGHT && void flush());
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
