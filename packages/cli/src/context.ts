// What a command may use: the lock and the gateway, opened when first asked for and closed at the
// end, and the person at the terminal.
import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import { createGatewayClient, type GatewayClient, type Refusal } from "@palisade/client";
import { createLocker, type Locker } from "@palisade/lock";
import { GatewayRefusal, UsageError } from "./failure.js";
import type { Style } from "./report.js";
import type { Settings } from "./settings.js";

/** The flags of a command as they were given. */
export type Flags = Readonly<Record<string, unknown>>;

export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly errors: Writable & { readonly isTTY?: boolean };
}

export class Context implements AsyncDisposable {
  readonly settings: Settings;
  readonly terminal: Terminal;
  readonly style: Style;
  #locker: Locker | undefined;

  constructor(settings: Settings, terminal: Terminal, style: Style) {
    this.settings = settings;
    this.terminal = terminal;
    this.style = style;
  }

  get locker(): Locker {
    this.#locker ??= this.#connect();
    return this.#locker;
  }

  #connect(): Locker {
    const { nodes, namespace, timeoutMs } = this.settings;
    if (nodes === undefined || nodes.length === 0)
      throw new UsageError("No node of the lock is known: set PALISADE_REDIS_URLS or give --nodes redis://host:port,redis://…");
    return createLocker({
      nodes,
      waitMs: timeoutMs,
      // More than a program that takes locks gives a node: an operator is far away, or the machine is in trouble.
      nodeTimeoutMs: Math.min(1_000, timeoutMs),
      connectTimeoutMs: Math.min(2_000, timeoutMs),
      label: "palisade (operator)",
      ...(namespace === undefined ? {} : { namespace }),
    });
  }

  get hasGateway(): boolean {
    return this.settings.gatewayUrl !== undefined;
  }

  get gateway(): GatewayClient {
    const { gatewayUrl, apiKey, timeoutMs } = this.settings;
    if (gatewayUrl === undefined)
      throw new UsageError(
        "No gateway is known: set PALISADE_GATEWAY_URL or give --gateway http://host:port, and set PALISADE_API_KEY; " +
          "npx @palisade/dev prints both.",
      );
    return createGatewayClient({ url: gatewayUrl, apiKey, timeoutMs, retry: { forMs: timeoutMs } });
  }

  /**
   * Asks on the terminal; undefined where nobody can answer. Ctrl-C and Ctrl-D are an empty
   * answer, not a failure.
   */
  async ask(question: string): Promise<string | undefined> {
    const { input, errors } = this.terminal;
    if (input.isTTY !== true) return undefined;
    const lines = createInterface({ input, output: errors, terminal: true });
    const left = new AbortController();
    lines.once("close", () => left.abort());
    try {
      return await lines.question(question, { signal: left.signal });
    } catch (error) {
      if (!left.signal.aborted) throw error;
      errors.write("\n");
      return "";
    } finally {
      lines.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#locker?.close();
  }
}

export function answered<A extends { readonly ok: true }>(answer: A | Refusal): A {
  if (answer.ok) return answer;
  // Without a status no gateway has answered: the detail says why.
  const remedy = answer.code === "unauthenticated" ? " Set PALISADE_API_KEY, here or in --env-file, to a key that it knows." : "";
  const said = answer.status === undefined ? answer.detail : `The gateway answered ${answer.code}: ${answer.detail}${remedy}`;
  throw new GatewayRefusal(said, answer.code);
}
