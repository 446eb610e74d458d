// One client's connection through the proxy: its two sockets, its two directions, and its end.
import { Socket } from "node:net";
import { OneWay, reset } from "./one-way.js";
import type { CutRule, Direction, Rules, Traffic } from "./rules.js";

export interface Upstream {
  readonly host: string;
  readonly port: number;
}

interface ConnectionOptions {
  readonly client: Socket;
  readonly rules: Rules;
  readonly traffic: Traffic;
  readonly onTraffic: () => void;
  readonly onClosed: (connection: Connection) => void;
}

export class Connection {
  readonly #client: Socket;
  readonly #server = new Socket({ allowHalfOpen: true });
  readonly #requests: OneWay;
  readonly #replies: OneWay;
  readonly #options: ConnectionOptions;
  #connected = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#requests = this.#direction("requests");
    this.#replies = this.#direction("replies");
    for (const socket of [this.#client, this.#server]) {
      socket.setNoDelay(true);
      socket.once("close", () => this.#closed());
    }
  }

  /** Opens the way to the server, once. */
  connect(upstream: Upstream): void {
    if (this.#connected) return;
    this.#connected = true;
    this.#server.connect(upstream.port, upstream.host);
  }

  get lostBytes(): boolean {
    return this.#requests.lost || this.#replies.lost;
  }

  /** The rules have changed. */
  pump(): void {
    this.#requests.pump();
    this.#replies.pump();
  }

  /** Both sides see a reset, now; what was on its way is gone. */
  cut(): void {
    reset(this.#client);
    reset(this.#server);
  }

  /** Ends it after what was passed on has arrived: a reset could overtake the last request. */
  finish(): void {
    if (this.#server.pending) this.#server.destroy();
    else this.#server.destroySoon();
    this.#client.destroySoon();
  }

  #direction(name: Direction): OneWay {
    const { rules, traffic, onTraffic } = this.#options;
    const [source, sink] = name === "requests" ? [this.#client, this.#server] : [this.#server, this.#client];
    let rule: CutRule | undefined;
    let passedBefore = 0;
    const way: OneWay = new OneWay({
      source,
      sink,
      gate: () => rules[name].gate,
      delayMs: () => rules.delayMs,
      budget: () => {
        if (rule !== rules[name].cut) {
          rule = rules[name].cut;
          passedBefore = way.passedBytes;
        }
        return rule && rule.afterBytes - (way.passedBytes - passedBefore);
      },
      traffic: traffic[name],
      onTraffic,
      onBudgetSpent: () => this.finish(),
    });
    return way;
  }

  #closed(): void {
    // A socket that was never connected does not close by itself.
    if (this.#client.destroyed && !this.#connected) this.#server.destroy();
    if (!this.#client.destroyed || !this.#server.destroyed) return;
    this.#requests.close();
    this.#replies.close();
    this.#options.onClosed(this);
  }
}
