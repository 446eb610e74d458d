// One server in a container, under an address that outlives kills and restarts.
// It stands on testcontainers' client and not on its GenericContainer, which waits ten seconds for
// the ports of a container that has died, removes it before its log can be quoted, and forgets one
// that cannot start.
import { isIP } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { BoundPorts, getReaper, LABEL_TESTCONTAINERS_SESSION_ID, Wait } from "testcontainers";
import type { Address } from "../postgres/provider.js";
import { returnPort, takePort } from "../process/port-block.js";
import { dockerEngine, type Engine, fetchImage, ownerLabels, type Surroundings, surroundingsOf, sweepLeftovers, unless } from "./engine.js";

type Handle = ReturnType<Engine["container"]["getById"]>;
type CreateOptions = Parameters<Engine["container"]["create"]>[0];

/** Where clients find the server. */
export interface Place extends Surroundings, Address {}

export interface ServerPlan {
  /** What the server is called in messages. */
  readonly name: string;
  readonly image: string;
  /** Where it listens when it has a network of its own. */
  readonly innerPort: number;
  /** What it logs once it answers. An answer on the port could be another server's. */
  readonly readyLine: RegExp;
  readonly program: (place: Place) => Pick<CreateOptions, "Cmd" | "Entrypoint" | "Env">;
  /** Files of this machine, as source:target:ro. */
  readonly binds?: readonly string[];
}

const OTHER_PORT_ATTEMPTS = 50;
const SAME_PORT_ATTEMPTS = 25;
const RETRY_MS = 20;
const READY_TIMEOUT_MS = 60_000;
const SHUTDOWN_TIMEOUT_MS = 5_000;
const LINES_QUOTED = 20;

export class ServerContainer implements Address {
  readonly #plan: ServerPlan;
  #place: Place = { host: "", port: 0, network: "own" };
  #handle: Handle | undefined;

  constructor(plan: ServerPlan) {
    this.#plan = plan;
  }

  async start(): Promise<this> {
    try {
      await this.#startSomewhere();
      return this;
    } catch (cause) {
      await this.stop();
      throw cause;
    }
  }

  get host(): string {
    return this.#place.host;
  }

  get port(): number {
    return this.#place.port;
  }

  async state(): Promise<{ readonly Running: boolean; readonly Paused: boolean; readonly ExitCode: number }> {
    return (await this.#existing.inspect()).State;
  }

  /**
   * SIGKILL to its first process, which takes all others with it. A paused server does nothing of
   * what it was asked meanwhile: the signal arrives before it goes on.
   */
  async kill(): Promise<void> {
    await this.#handle?.kill().catch(unless(404, 409));
    await this.#handle?.wait();
  }

  /** SIGINT; a server that is paused, or has not ended in time, is killed. */
  async interrupt(): Promise<void> {
    if ((await this.state()).Paused) return this.kill();
    await (await dockerEngine()).container.stop(this.#existing, { timeout: SHUTDOWN_TIMEOUT_MS });
  }

  /** "kept": the same container with what is on its disk; "forgotten": another one in its place. */
  async startAgain(memory: "kept" | "forgotten"): Promise<void> {
    for (let attempt = 1; attempt <= SAME_PORT_ATTEMPTS; attempt += 1) {
      if (memory === "forgotten") await this.#create(this.port);
      if ((await this.#run()) === "ready") return;
      await sleep(RETRY_MS);
    }
    throw new Error(`${this.#plan.name} did not start again: another program has taken port ${this.port}`);
  }

  async pause(): Promise<void> {
    if (!(await this.state()).Paused) await this.#existing.pause();
  }

  async resume(): Promise<void> {
    if ((await this.state()).Paused) await this.#existing.unpause();
  }

  /** Where other containers find it, while it runs. */
  async amongServers(): Promise<Address> {
    if (this.#place.network === "shared") return this.#place;
    const [network] = Object.values((await this.#existing.inspect()).NetworkSettings.Networks);
    if (!network?.IPAddress) throw new Error(`${this.#plan.name} has no address among containers`);
    return { host: network.IPAddress, port: this.#plan.innerPort };
  }

  /** For good: it goes with its disk. */
  async stop(): Promise<void> {
    await this.#discard();
    if (this.port !== 0) returnPort(this.port);
    this.#place = { ...this.#place, port: 0 };
  }

  get #existing(): Handle {
    if (this.#handle === undefined) throw new Error(`${this.#plan.name} has been stopped for good`);
    return this.#handle;
  }

  async #startSomewhere(): Promise<void> {
    for (let attempt = 1; attempt <= OTHER_PORT_ATTEMPTS; attempt += 1) {
      await this.#create(await takePort());
      if ((await this.#run()) === "ready") return;
    }
    throw new Error(`${this.#plan.name} found ${OTHER_PORT_ATTEMPTS} ports in use, the last of them ${this.port}`);
  }

  async #create(port: number): Promise<void> {
    const { image, program, binds = [] } = this.#plan;
    await this.#discard();
    const engine = await dockerEngine();
    this.#place = { ...surroundingsOf(engine), port };
    // By the session, testcontainers' reaper finds the containers of a killed process.
    const { sessionId } = await getReaper(engine).catch(reaperMissing);
    await Promise.all([sweepLeftovers(engine), fetchImage(engine, image)]);
    const { ExposedPorts, HostConfig } = networkOf(this.#place, this.#plan.innerPort);
    this.#handle = await engine.container.create({
      ...program(this.#place),
      Image: image,
      StopSignal: "SIGINT",
      Labels: { ...ownerLabels, [LABEL_TESTCONTAINERS_SESSION_ID]: sessionId },
      ExposedPorts,
      // What another driver logs may not be readable.
      HostConfig: { ...HostConfig, Binds: [...binds], LogConfig: { Type: "json-file", Config: {} } },
    });
  }

  /** Starts the container that there is, and waits until its server answers. */
  async #run(): Promise<"ready" | "address in use"> {
    const { name, readyLine } = this.#plan;
    try {
      // Counted and not asked for since the start: the engine may note that after the first lines.
      const before = await this.#log();
      const times = before.split("\n").filter((line) => readyLine.test(line)).length + 1;
      await this.#existing.start();
      const ready = Wait.forLogMessage(readyLine, times).withStartupTimeout(READY_TIMEOUT_MS);
      await ready.waitUntilReady(this.#existing, new BoundPorts()).catch((cause: Error) => this.#explain(cause, before.length));
      return "ready";
    } catch (cause) {
      const { message } = cause as Error;
      if (/port is already allocated|address already in use/i.test(message)) return "address in use";
      throw new Error(`${name} did not start on port ${this.port}: ${message}`, { cause });
    }
  }

  async #explain(cause: Error, logBegin: number): Promise<never> {
    const { Running, ExitCode } = await this.state();
    if (Running) throw cause;
    const lines = (await this.#log()).slice(logBegin).trim().split("\n");
    const said = lines.slice(-LINES_QUOTED).join("\n  ");
    const quoted = said === "" ? "it said nothing" : `its last lines:\n  ${said}`;
    throw new Error(`${this.#plan.name} exited with ${ExitCode}; ${quoted}`, { cause });
  }

  /** The whole log. While the container runs, this waits for its end. */
  async #log(): Promise<string> {
    return await text(await (await dockerEngine()).container.logs(this.#existing));
  }

  async #discard(): Promise<void> {
    await this.#handle?.remove({ force: true, v: true }).catch(unless(404, 409));
    this.#handle = undefined;
  }
}

function reaperMissing(cause: Error): never {
  const why = `testcontainers' reaper did not start: ${cause.message}`;
  throw new Error(`${why}; TESTCONTAINERS_RYUK_DISABLED=true does without`, { cause });
}

function networkOf({ host, port, network }: Place, innerPort: number): Pick<CreateOptions, "ExposedPorts" | "HostConfig"> {
  if (network === "shared") return { HostConfig: { NetworkMode: "host" } };
  const inside = `${innerPort}/tcp`;
  // On one address only, as far as that has a number: the servers let any client do anything.
  const binding = { HostIp: isIP(host) === 0 ? "" : host, HostPort: String(port) };
  return { ExposedPorts: { [inside]: {} }, HostConfig: { PortBindings: { [inside]: [binding] } } };
}
