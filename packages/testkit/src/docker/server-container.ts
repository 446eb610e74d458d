// One server in a container, under an address of this machine that outlives kills and restarts. It must not know which server it is.
import { setTimeout as sleep } from "node:timers/promises";
import { returnPort, takePort } from "../process/port-block.js";
import { Container, type ContainerSpec, type Place } from "./container.js";

interface Address {
  readonly host: string;
  readonly port: number;
}

export interface ServerPlan {
  /** What the server is called in messages. */
  readonly name: string;
  readonly container: (place: Place) => ContainerSpec;
  /** Resolves when the server answers. `failure` tells why waiting is pointless by now, or undefined. */
  readonly untilReady: (address: Address, failure: () => string | undefined) => Promise<void>;
}

const portAttempts = 50;
const samePortAttempts = 25;
const portPatienceMs = 20;
const shutdownPatienceMs = 5_000;

export class ServerContainer {
  readonly #plan: ServerPlan;
  #port = 0;
  #container: Container | undefined;
  #state: "running" | "paused" | "ended" | "removed" = "ended";

  private constructor(plan: ServerPlan) {
    this.#plan = plan;
  }

  static async start(plan: ServerPlan): Promise<ServerContainer> {
    const server = new ServerContainer(plan);
    try {
      await server.#startSomewhere();
      return server;
    } catch (cause) {
      await server.remove();
      throw cause;
    }
  }

  get host(): string {
    return this.#existing.host;
  }

  get port(): number {
    return this.#port;
  }

  /** Whether it would answer: it runs and is not paused. */
  get awake(): boolean {
    return this.#state === "running";
  }

  /** SIGKILL. One that is paused does nothing any more: the engine delivers the signal before it lets the server go on. */
  async kill(): Promise<void> {
    if (this.#state === "ended" || this.#state === "removed") return;
    await this.#existing.signal("SIGKILL");
    await this.#existing.ended();
    this.#state = "ended";
  }

  /** SIGINT; a server that has not ended in time is killed. */
  async interrupt(): Promise<void> {
    if (this.#state === "paused") return this.kill();
    if (this.#state !== "running") return;
    await this.#existing.signal("SIGINT");
    const code = await this.#existing.ended(AbortSignal.timeout(shutdownPatienceMs));
    if (code === undefined) return this.kill();
    this.#state = "ended";
  }

  /** The same container again, with what is on its disk. */
  async startAgain(): Promise<void> {
    for (let attempt = 1; attempt <= samePortAttempts; attempt += 1) {
      if ((await this.#existing.start()) === "started") return this.#untilReady();
      await sleep(portPatienceMs);
    }
    throw new Error(`${this.#plan.name} did not start again: another program has taken port ${this.#port}`);
  }

  /** Another container in its place, with nothing on its disk. */
  async startAnew(): Promise<void> {
    await this.#discard();
    for (let attempt = 1; attempt <= samePortAttempts; attempt += 1) {
      if ((await this.#startAt(this.#port)) === "ready") return;
      await sleep(portPatienceMs);
    }
    await this.#startSomewhere();
  }

  async pause(): Promise<void> {
    if (this.#state === "paused") return;
    this.#mustRun();
    await this.#existing.pause();
    this.#state = "paused";
  }

  async resume(): Promise<void> {
    if (this.#state === "running") return;
    this.#mustRun();
    await this.#existing.unpause();
    this.#state = "running";
  }

  /** Where other containers find it, while it runs. */
  amongContainers(): Promise<Address> {
    return this.#existing.amongContainers();
  }

  async lastLines(): Promise<readonly string[]> {
    return (await this.#container?.lastLines()) ?? [];
  }

  /** For good. */
  async remove(): Promise<void> {
    if (this.#state === "removed") return;
    this.#state = "removed";
    await this.#discard();
    if (this.#port !== 0) returnPort(this.#port);
  }

  get #existing(): Container {
    if (this.#container === undefined || this.#state === "removed") throw new Error(`${this.#plan.name} has been stopped for good`);
    return this.#container;
  }

  #mustRun(): void {
    if (this.#state !== "running" && this.#state !== "paused") throw new Error(`${this.#plan.name} is not running`);
  }

  async #discard(): Promise<void> {
    await this.#container?.remove();
    this.#container = undefined;
  }

  async #startSomewhere(): Promise<void> {
    for (let attempt = 1; attempt <= portAttempts; attempt += 1) {
      if ((await this.#startAt(await takePort())) === "ready") return;
    }
    throw new Error(`${this.#plan.name} found ${portAttempts} ports in use, the last of them ${this.#port}`);
  }

  async #startAt(port: number): Promise<"ready" | "address in use"> {
    this.#port = port;
    this.#container = await Container.create(this.#plan.container, port);
    try {
      if ((await this.#container.start()) === "started") {
        await this.#untilReady();
        return "ready";
      }
    } catch (cause) {
      if (!(cause as Error).message.includes("Address already in use")) {
        throw new Error(`${this.#plan.name} did not start on port ${port}: ${(cause as Error).message}`, { cause });
      }
    }
    await this.#discard();
    return "address in use";
  }

  /** A container that ends meanwhile is the end of waiting. */
  async #untilReady(): Promise<void> {
    const container = this.#existing;
    this.#state = "running";
    const watch = new AbortController();
    let failure: string | undefined;
    const ended = container.ended(watch.signal).then(async (code) => {
      if (code !== undefined) failure = await this.#obituary(code);
    });
    try {
      await this.#plan.untilReady({ host: container.host, port: this.#port }, () => failure);
    } catch (cause) {
      if (failure !== undefined) this.#state = "ended";
      throw cause;
    } finally {
      watch.abort();
      await ended;
    }
  }

  async #obituary(code: number): Promise<string> {
    const said = await this.lastLines();
    return `${this.#plan.name} exited with ${code}; ${said.length === 0 ? "it said nothing" : `its last lines:\n  ${said.join("\n  ")}`}`;
  }
}
