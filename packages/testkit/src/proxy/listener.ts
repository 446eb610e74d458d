// The proxy's port, which stays the same while it is closed and opened again.
import { createServer, type Socket } from "node:net";
import { returnPort, takePort } from "../process/port-block.js";

const ATTEMPTS = 50;

export class Listener {
  readonly host = "127.0.0.1";
  #port = 0;
  #door: { readonly shut: () => void } | undefined;
  #wanted = false;
  #opening: Promise<void> = Promise.resolve();
  readonly #onClient: (client: Socket) => void;

  constructor(onClient: (client: Socket) => void) {
    this.#onClient = onClient;
  }

  get port(): number {
    return this.#port;
  }

  /** Opens on a free port. */
  async openSomewhere(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      this.#port = await takePort();
      try {
        this.#wanted = true;
        return await this.#listen();
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== "EADDRINUSE" || attempt === ATTEMPTS) throw cause;
      }
    }
  }

  /** Closed, the system refuses clients. The last call counts, and is true when it resolves. */
  async set(state: "open" | "closed"): Promise<void> {
    this.#wanted = state === "open";
    if (!this.#wanted) this.#door?.shut();
    const open = (): Promise<void> | undefined => (this.#door === undefined && this.#wanted ? this.#listen() : undefined);
    // An earlier failure was that caller's to report.
    this.#opening = this.#opening.then(open, open);
    await this.#opening;
  }

  /** Closed for good. */
  async close(): Promise<void> {
    await this.set("closed");
    returnPort(this.#port);
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, this.#onClient);
      const gone = (): void => {
        this.#door = undefined;
      };
      // The port is bound a moment before we are told. Earlier than that there is nothing to shut
      // yet, and it is done when we are told.
      const shut = (): void => {
        if (!server.listening) return;
        server.close();
        gone();
        resolve();
      };
      const failed = (cause: Error): void => {
        gone();
        reject(cause);
      };
      this.#door = { shut };
      server.once("error", failed);
      server.listen({ port: this.#port, host: this.host, exclusive: true }, () => {
        server.unref();
        server.off("error", failed);
        if (this.#wanted) resolve();
        else shut();
      });
    });
  }
}
