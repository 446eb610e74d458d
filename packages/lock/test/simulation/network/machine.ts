// The machine of one node. Requests to a stopped server wait until it continues; a machine whose
// server is down refuses connections.
import type { SimServer } from "../server/sim-server.js";

export class Machine {
  readonly server: SimServer;
  state: "running" | "stopped" | "down" = "running";
  isRefusing = false;
  #waiting: (() => void)[] = [];

  constructor(server: SimServer) {
    this.server = server;
  }

  get accepts(): boolean {
    return this.state !== "down" && !this.isRefusing;
  }

  /** Executes now, or when the server continues. Requests of an earlier life are dropped. */
  execute(run: () => void): void {
    if (this.state === "running") run();
    else if (this.state === "stopped") this.#waiting.push(run);
  }

  stop(): void {
    if (this.state === "running") this.state = "stopped";
  }

  continue(): void {
    if (this.state !== "stopped") return;
    this.state = "running";
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }

  goDown(): void {
    this.state = "down";
    this.#waiting = [];
  }

  comeUp(): void {
    this.state = "running";
  }
}
