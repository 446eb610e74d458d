// Requests as bytes on a socket: nothing on this side repairs a path, joins headers or follows
// rules. Every answer is checked against the OpenAPI document that the gateway publishes: status,
// media type, body and headers. The published schemas are open, because answers may grow; here they
// are closed, so that an undescribed member is noticed.
import { request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { openApiDocument } from "@palisade/gateway";
import { Ajv2020, type AnySchema, type ValidateFunction } from "ajv/dist/2020.js";

interface WireRequest {
  readonly method: string;
  /** As it goes on the wire. */
  readonly path: string;
  /** Name and value alternate, so that a name may come twice. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents whose shape they know.
  readonly json: any;
}

export function send(base: string, { method, path, headers = [], body }: WireRequest): Promise<Answer> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({
      host: hostname,
      port,
      method,
      path,
      headers: ["Host", `${hostname}:${port}`, ...lengthOf(body), ...headers],
      agent: false,
    });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const answer = answerOf(incoming.statusCode ?? 0, incoming.headers, Buffer.concat(chunks).toString("utf8"));
        try {
          assertConforms(method, path, answer);
          resolve(answer);
        } catch (error) {
          reject(error);
        }
      });
    });
    outgoing.end(body);
  });
}

function lengthOf(body: string | Buffer | undefined): readonly string[] {
  return body === undefined ? [] : ["Content-Length", String(Buffer.byteLength(body))];
}

function answerOf(status: number, headers: Readonly<Record<string, string | string[] | undefined>>, text: string): Answer {
  const flat = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  const isJson = flat["content-type"]?.includes("json") === true && text !== "";
  return { status, headers: flat, text, json: isJson ? JSON.parse(text) : undefined };
}

interface PutOptions {
  readonly token: number | string;
  readonly headers?: readonly string[];
}

export function put(base: string, path: string, options: PutOptions & { readonly value: unknown }): Promise<Answer> {
  const headers = ["Content-Type", "application/json", "Fencing-Token", String(options.token), ...(options.headers ?? [])];
  return send(base, { method: "PUT", path: `/v1/resources/${path}`, headers, body: JSON.stringify(options.value) });
}

export function get(base: string, path: string, ...headers: string[]): Promise<Answer> {
  return send(base, { method: "GET", path: `/v1/resources/${path}`, headers });
}

export function remove(base: string, path: string, options: PutOptions): Promise<Answer> {
  return send(base, {
    method: "DELETE",
    path: `/v1/resources/${path}`,
    headers: ["Fencing-Token", String(options.token), ...(options.headers ?? [])],
  });
}

export function seal(base: string, path: string, token: number | string): Promise<Answer> {
  return send(base, { method: "POST", path: `/v1/resources/${path}/seal`, headers: ["Fencing-Token", String(token)] });
}

/** A connection whose every byte is written by the test. */
export class RawConnection {
  readonly socket: Socket;
  received = "";
  readonly closed: Promise<void>;

  constructor(base: string) {
    const { hostname, port } = new URL(base);
    this.socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    this.socket.setEncoding("latin1");
    this.socket.on("data", (text: string) => {
      this.received += text;
    });
    // A reset is one of the ways a connection may end; tests judge by what was received.
    this.socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => this.socket.on("close", () => resolve()));
    // Half-open is for this side only: when the gateway ends its own half, so does the test.
    this.socket.on("end", () => this.socket.end());
  }

  send(text: string | Buffer): void {
    this.socket.write(text);
  }

  /** Closes this side's half; answers may still come. */
  finish(): void {
    this.socket.end();
  }

  async receives(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.received)) {
      if (this.socket.closed) throw new Error(`the connection was closed before ${String(pattern)}; received: ${this.received}`);
      await Promise.race([new Promise((resolve) => this.socket.once("data", resolve)), this.closed]);
    }
  }
}

interface Described {
  readonly content?: Readonly<Record<string, { readonly schema: AnySchema }>>;
  readonly headers?: Readonly<Record<string, unknown>>;
}
interface Operation {
  readonly responses: Readonly<Record<string, Described>>;
}

const document = closed(openApiDocument()) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly headers: Readonly<Record<string, { readonly schema: AnySchema }>> };
};
const ajv = new Ajv2020({ strict: false, formats: { int64: true, "date-time": (text: string) => !Number.isNaN(Date.parse(text)) } });
const compiled = new Map<string, ValidateFunction>();
const describedHeaders = Object.keys(document.components.headers);

/** Throws with every difference. */
function assertConforms(method: string, path: string, answer: Answer): void {
  const found = operationOf(method, path);
  // A request that is no operation is answered by a problem that says so.
  const described = found === undefined ? onlyProblem : found.operation.responses[answer.status];
  const where = `${method} ${path} → ${answer.status}`;
  if (described === undefined) throw new Error(`${where} is not described`);
  assertBody(where, described, { method, answer });
  for (const name of describedHeaders) {
    const value = answer.headers[name.toLowerCase()];
    if (value === undefined) continue;
    if (described !== onlyProblem && described.headers?.[name] === undefined)
      throw new Error(`${where} carries ${name}, which is not described`);
    assertMatches(`${where} ${name}`, document.components.headers[name]?.schema ?? {}, value);
  }
}

function assertBody(where: string, described: Described, { method, answer }: { readonly method: string; readonly answer: Answer }): void {
  if (method === "HEAD") return;
  if (described.content === undefined) {
    if (answer.text !== "") throw new Error(`${where} has a body that is not described: ${answer.text}`);
    return;
  }
  const mediaType = answer.headers["content-type"] ?? "none";
  const content = described.content[mediaType];
  if (content === undefined)
    throw new Error(`${where} has the media type ${mediaType}, described are ${Object.keys(described.content).join(", ")}`);
  assertMatches(where, content.schema, JSON.parse(answer.text));
}

function assertMatches(where: string, schema: AnySchema, value: unknown): void {
  const key = JSON.stringify(schema);
  let validate = compiled.get(key);
  if (validate === undefined) {
    validate = ajv.compile({ ...(schema as object), components: document.components });
    compiled.set(key, validate);
  }
  if (!validate(value))
    throw new Error(`${where} does not match its description: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`);
}

const onlyProblem: Described = { content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } } };

function operationOf(method: string, target: string): { readonly operation: Operation } | undefined {
  const path = target.split("?")[0] ?? "";
  // The longest template first: /{resource}/seal is also a /{resource}.
  const templates = Object.keys(document.paths).sort((a, b) => b.length - a.length);
  for (const template of templates) {
    const operation = document.paths[template]?.[method.toLowerCase()];
    if (operation !== undefined && new RegExp(`^${template.replace(/\{\w+\}/, ".+")}$`).test(path)) return { operation };
  }
  return undefined;
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, closed(member)]));
  const isClosable = entries.type === "object" && typeof entries.properties === "object" && entries.additionalProperties === undefined;
  return isClosable ? { ...entries, additionalProperties: false } : entries;
}
