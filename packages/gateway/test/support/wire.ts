// Requests as bytes on a socket: nothing on this side repairs a path, joins headers or follows
// rules. Every answer is checked against the OpenAPI document.
import { request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { assertConforms, type WireAnswer } from "./conforms.js";

export interface WireRequest {
  readonly method: string;
  /** As it goes on the wire. */
  readonly path: string;
  /** Name and value alternate, so that a name may come twice. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer | undefined;
}

export interface Answer extends WireAnswer {
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

export interface PutOptions {
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
      await new Promise((resolve) => {
        this.socket.once("data", resolve);
        this.socket.once("close", resolve);
      });
    }
  }
}
