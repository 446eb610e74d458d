// A fixed number of write connections. It decides how many statements are in flight, and lowers that number to one when Postgres has stopped answering.
// It must not queue: who waits for a lane keeps a bounded queue of his own.
import { type BoundStatement, type Reply, WriteConnection, type WriteConnectionOptions } from "./write-connection.js";

export class WriteSlots {
  readonly #idle: WriteConnection[];
  readonly #all: readonly WriteConnection[];
  // A statement that timed out may hang in its server process for as long as the standby is away, long after we have cut the connection. Starting more of them at
  // full width would use up Postgres's connections within a minute; one at a time is enough to notice that it answers again.
  #answering = true;

  constructor(count: number, options: WriteConnectionOptions) {
    this.#all = Array.from({ length: count }, () => new WriteConnection(options));
    this.#idle = [...this.#all];
  }

  get inFlight(): number {
    return this.#all.length - this.#idle.length;
  }

  get open(): number {
    return this.#all.filter((connection) => connection.isOpen).length;
  }

  /** Undefined when as many statements run as may. The most recently used connection goes first, so that few are open when little is written. */
  tryTake(): WriteConnection | undefined {
    if (!this.#answering && this.inFlight > 0) return undefined;
    return this.#idle.pop();
  }

  release(connection: WriteConnection): void {
    this.#idle.push(connection);
  }

  async run(connection: WriteConnection, statement: BoundStatement): Promise<Reply> {
    const reply = await connection.run(statement);
    this.#answering = !("failure" in reply && reply.failure.kind === "unknown" && reply.failure.reason === "timed_out");
    return reply;
  }

  /** Statements that still run end as connection_lost. */
  destroy(): void {
    for (const connection of this.#all) connection.destroy();
  }

  async end(timeoutMs: number): Promise<void> {
    await Promise.all(this.#all.map((connection) => connection.end(timeoutMs)));
  }
}
