// For unit tests of code that uses the client: a gateway in memory. The client is the real one, over
// a fetch that answers as a gateway does; a suite of tests is run over both. Tokens are taken on
// trust; merge patches and transactions round numbers as JavaScript does.
import { createGatewayClient, type GatewayClient, type GatewayClientOptions } from "./gateway-client.js";
import type { FenceChange, Operation } from "./options.js";
import type { HistoryEntry, ListedResource, Refusal, RefusalCode, RefusedEntry } from "./results.js";

/** What is stored of a resource; without `text` there is no document. */
interface Row extends Omit<ListedResource, "value"> {
  readonly text: string | undefined;
}

/** One operation, its document as text. */
interface Write {
  readonly op: Operation["op"];
  readonly resource: string;
  readonly token: number;
  readonly seq?: number | undefined;
  readonly ifMatch?: number | "*" | undefined;
  readonly ifNoneMatch?: "*" | undefined;
  readonly text?: string | undefined;
}

type Facts = Partial<Omit<Refusal, "ok" | "code" | "status" | "detail" | "outcome">>;
type Stored = { readonly row: Row; readonly created: boolean };

/** A gateway of a test: clients that are given the same one see each other's documents. */
export class FakeGateway {
  /** False: every call fails as it does where nothing listens (`connection_failed`). */
  reachable = true;
  readonly #rows = new Map<string, Row>();
  readonly #history = new Map<string, HistoryEntry[]>();
  /** Equal ones are one, with their number. */
  readonly #refused = new Map<string, RefusedEntry>();
  #refusals = 0;
  readonly #since = now();

  /** What a client is given in place of the global one. */
  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    if (!this.reachable) throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
    return this.#answer(new URL(String(input)), init.method ?? "GET", {
      headers: new Headers(init.headers),
      body: String(init.body ?? ""),
    });
  };

  #answer(url: URL, method: string, { headers, body }: { readonly headers: Headers; readonly body: string }): Response {
    const [, , kind = "", ...segments] = url.pathname.split("/").map(decodeURIComponent);
    if (kind === "resources" && method === "POST") segments.pop(); // …/seal
    const resource = segments.join("/");
    const [, token, , seq] = /^(\d+)(;seq=(\d+))?$/.exec(headers.get("fencing-token") ?? "") ?? [];
    const holder = { token: Number(token ?? 0), ...(seq === undefined ? {} : { seq: Number(seq) }) };
    const tag = (name: string): string | undefined => headers.get(name)?.replaceAll('"', "");
    const ifMatch = tag("if-match");
    const write = (op: Operation["op"], text?: string): Response =>
      this.#written({
        op,
        resource,
        ...holder,
        text,
        ifMatch: ifMatch === "*" || ifMatch === undefined ? ifMatch : Number(ifMatch),
        ifNoneMatch: tag("if-none-match") === "*" ? "*" : undefined,
      });
    switch (`${method} ${kind}`) {
      case "PUT resources":
        return write("put", body);
      case "PATCH resources":
        return write("patch", body);
      case "DELETE resources":
        return write("delete");
      case "POST resources":
        return write("seal");
      case "POST transactions":
        return this.#transaction(body, holder);
      case "GET resources":
        return resource === "" ? this.#list(url.searchParams) : this.#read(resource, tag("if-none-match"));
      case "GET history":
        return this.#page(this.#history.get(resource) ?? [], url.searchParams, { resource });
      case "GET refused":
        return this.#listRefused(url.searchParams);
      case "GET fences":
        return this.#fence(resource);
      case "POST fences":
        return this.#moved(resource, JSON.parse(body) as FenceChange);
      default:
        return problem("route_not_found", 404, {});
    }
  }

  #read(resource: string, ifNoneMatch: string | undefined): Response {
    const row = this.#rows.get(resource);
    if (row?.text === undefined) return problem("not_found", 404, { resource, currentToken: row?.token });
    return ifNoneMatch === String(row.rev)
      ? new Response(null, { status: 304, headers: headersOf(row) })
      : new Response(row.text, { headers: headersOf(row) });
  }

  #written(write: Write): Response {
    const decided = decide(this.#rows.get(write.resource), write);
    if (decided instanceof Response) return this.#refuse(decided, write);
    const { row, created } = decided;
    this.#store(write, row);
    if (write.op === "delete") return new Response(null, { status: 204, headers: headersOf(row) });
    return new Response(receipt(row, write.op), { status: created ? 201 : 200, headers: headersOf(row) });
  }

  #transaction(body: string, holder: Pick<Write, "token" | "seq">): Response {
    const { operations } = JSON.parse(body) as { readonly operations: readonly (Write & { readonly value?: unknown })[] };
    const texts = operations.map(({ value }) => (value === undefined ? undefined : JSON.stringify(value)));
    const writes = operations.map((one, index): Write => {
      const token = one.token ?? holder.token;
      return { ...one, token, seq: one.seq ?? (one.token === undefined ? holder.seq : undefined), text: texts[index] };
    });
    const decided = writes.map((write, operation) => decide(this.#rows.get(write.resource), write, { operation }));
    const refused = decided.findIndex((one) => one instanceof Response);
    const [refusal, at] = [decided[refused], writes[refused]];
    if (refusal instanceof Response && at !== undefined) return this.#refuse(refusal, at);
    const rows = decided.map((one) => (one as Stored).row);
    for (const [index, write] of writes.entries()) this.#store(write, rows[index] as Row);
    return new Response(`{"results":[${rows.map((row, index) => receipt(row, writes[index]?.op)).join(",")}]}`, { headers: headersOf() });
  }

  #store({ op, resource, seq = 0 }: Write, row: Row): void {
    this.#rows.set(resource, row);
    if (op === "seal") return;
    const { rev, token, holder, updatedAt: at } = row;
    const entries = this.#history.get(resource) ?? [];
    this.#history.set(resource, [{ rev, op, token, seq, holder, at }, ...entries]);
  }

  #refuse(refusal: Response, { resource, token: presentedToken }: Write): Response {
    const code = refusal.headers.get("x-code") as RefusalCode;
    const currentToken = code === "fencing_token_stale" ? (this.#rows.get(resource)?.token ?? null) : null;
    const refused = { resource, code, presentedToken, currentToken, caller: "anonymous" };
    const key = JSON.stringify(refused);
    const [at, same] = [now(), this.#refused.get(key)];
    this.#refusals += 1;
    this.#refused.delete(key);
    this.#refused.set(key, { ...refused, id: this.#refusals, at, firstAt: same?.firstAt ?? at, times: (same?.times ?? 0) + 1 });
    return refusal;
  }

  #list(query: URLSearchParams): Response {
    const [prefix, after, limit] = [query.get("prefix") ?? "", query.get("cursor") ?? "", Number(query.get("limit") ?? 100)];
    const rows = [...this.#rows.values()]
      .filter(({ resource, text }) => resource.startsWith(prefix) && resource > after && (text !== undefined || query.has("tombstones")))
      .sort((a, b) => (a.resource < b.resource ? -1 : 1));
    const items = rows.slice(0, limit).map(({ text, ...row }) => {
      return query.get("include") === "documents" ? { ...row, value: text === undefined ? null : (JSON.parse(text) as unknown) } : row;
    });
    return json({ items, nextCursor: rows.length > limit ? items.at(-1)?.resource : null });
  }

  #listRefused(query: URLSearchParams): Response {
    const [prefix, since] = [query.get("prefix") ?? "", query.get("since") ?? ""];
    const newestFirst = [...this.#refused.values()].reverse();
    const entries = newestFirst.filter(({ resource, at }) => resource.startsWith(prefix) && at >= since);
    return this.#page(
      entries.map((entry) => ({ ...entry, rev: entry.id })),
      query,
      { since: this.#since },
    );
  }

  #page(entries: readonly { readonly rev: number }[], query: URLSearchParams, head: object): Response {
    const before = Number(query.get("before") ?? Number.POSITIVE_INFINITY);
    const [left, limit] = [entries.filter(({ rev }) => rev < before), Number(query.get("limit") ?? 100)];
    const page = left.slice(0, limit);
    return json({ ...head, entries: page, nextBefore: left.length > limit ? page.at(-1)?.rev : null });
  }

  #fence(resource: string): Response {
    const row = this.#rows.get(resource);
    if (row === undefined) return problem("not_found", 404, { resource });
    const { text: _text, ...fence } = row;
    return json(fence, row);
  }

  #moved(resource: string, { action, token }: FenceChange): Response {
    const known = this.#rows.get(resource);
    const previous = known?.token ?? null;
    const moves = action === "raise" ? token > (previous ?? 0) : token < (previous ?? 0);
    if (!moves) return problem("fence_unchanged", 409, { resource, currentToken: previous ?? undefined });
    const row = { ...(known ?? unknownTo(resource)), token, seq: 0, holder: "anonymous", updatedAt: now() };
    this.#rows.set(resource, row);
    return json({ resource, previousToken: previous, token }, row);
  }
}

/** Options of createGatewayClient, with a gateway in memory in place of its address. */
export interface FakeClientOptions extends Omit<GatewayClientOptions, "url" | "fetch"> {
  /** Default: one that no other client has. */
  readonly gateway?: FakeGateway;
}

/** A client for unit tests: no gateway, no network, one try unless `retry` says more, and otherwise as createGatewayClient's. */
export function createFakeClient({ gateway = new FakeGateway(), ...options }: FakeClientOptions = {}): GatewayClient {
  return createGatewayClient({ retry: { attempts: 1 }, ...options, url: "http://gateway.fake", fetch: gateway.fetch });
}

/** What is stored then, or why it is not; as the gateway's statement compares, in its order. */
function decide(stored: Row | undefined, write: Write, facts: Facts = {}): Stored | Response {
  const { op, resource, token, seq, ifMatch, ifNoneMatch } = write;
  const row = stored ?? unknownTo(resource);
  const hasDocument = row.text !== undefined;
  const known = { ...facts, resource, presentedToken: token };
  const currentETag = hasDocument ? `"${row.rev}"` : undefined;
  if (token < row.token) return problem("fencing_token_stale", 412, { ...known, currentToken: row.token });
  if (token === row.token && seq !== undefined && seq <= row.seq)
    return problem("sequence_out_of_order", 409, { ...known, currentSeq: row.seq, currentETag });
  const fits = ifNoneMatch === undefined && (ifMatch === undefined || (hasDocument && (ifMatch === "*" || ifMatch === row.rev)));
  if (!fits && !(ifNoneMatch === "*" && !hasDocument)) return problem("etag_mismatch", 412, { ...known, currentETag });
  if (!hasDocument && (op === "patch" || op === "delete")) return problem("not_found", 404, known);
  const next = {
    resource,
    token,
    seq: token > row.token ? (seq ?? 0) : Math.max(row.seq, seq ?? 0),
    rev: op === "seal" ? row.rev : row.rev + 1,
    holder: "anonymous",
    updatedAt: now(),
    text: textAfter(row.text, write),
  };
  return { row: next, created: op === "put" && !hasDocument };
}

function textAfter(before: string | undefined, { op, text = "null" }: Write): string | undefined {
  if (op === "put") return text;
  if (op === "patch") return JSON.stringify(merged(JSON.parse(before ?? "null"), JSON.parse(text)));
  return op === "delete" ? undefined : before;
}

/** RFC 7396. */
function merged(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const members = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name);
    else members.set(name, merged(members.get(name), value));
  }
  return Object.fromEntries(members);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unknownTo(resource: string): Row {
  return { resource, token: 0, seq: 0, rev: 0, holder: null, updatedAt: now(), text: undefined };
}

function now(): string {
  return new Date().toISOString();
}

/** The document comes last, as it is stored. */
function receipt({ resource, token, rev, text }: Row, op: Operation["op"] | undefined): string {
  const head = JSON.stringify({ resource, token, rev });
  return op === "patch" || op === "seal" ? `${head.slice(0, -1)},"value":${text ?? "null"}}` : head;
}

function headersOf(row?: Pick<Row, "rev" | "token">): Record<string, string> {
  const type = { "content-type": "application/json" };
  if (row === undefined) return type;
  return { ...type, "fencing-token": String(row.token), ...(row.rev === 0 ? {} : { etag: `"${row.rev}"` }) };
}

function json(body: object, row?: Row): Response {
  return new Response(JSON.stringify(body), { headers: headersOf(row) });
}

function problem(code: RefusalCode, status: number, facts: Facts): Response {
  const detail = `The gateway in memory answers ${code}.`;
  const body = { type: `urn:palisade:problem:${code}`, status, code, detail, outcome: "not_applied", ...facts };
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/problem+json", "x-code": code } });
}
