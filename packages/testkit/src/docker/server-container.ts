// One server in a container, under an address of this machine that outlives kills and restarts. It must not know which server it is.
import { setTimeout as sleep } from "node:timers/promises";
import { GenericContainer, type StartedTestContainer, StartupCheckStrategy, type StartupStatus, type TestContainer } from "testcontainers";
import { returnPort, takePort } from "../process/port-block.js";
import { dockerEngine, reachable } from "./engine.js";

export interface ContainerPlan {
  readonly image: string;
  /** Where the server listens: inside a network of its own, published on the host; or directly on the host's network at the port it is told. */
  readonly listens: { readonly in: "own network"; readonly port: number } | { readonly in: "host network" };
  /** The rest of the plan; the port is the one on this machine. */
  readonly equip: (container: GenericContainer, hostPort: number) => TestContainer;
  /** Resolves when the server answers at the address. */
  readonly untilReady: (address: { readonly host: string; readonly port: number }) => Promise<void>;
}

type Handle = ReturnType<Awaited<ReturnType<typeof dockerEngine>>["container"]["getById"]>;

const shutdownPatienceMs = 5_000;
const pollMs = 20;

export class ServerContainer {
  readonly port: number;
  readonly #plan: ContainerPlan;
  #started: StartedTestContainer;
  #handle: Handle;
  #paused = false;

  private constructor(plan: ContainerPlan, port: number, running: { readonly started: StartedTestContainer; readonly handle: Handle }) {
    this.#plan = plan;
    this.port = port;
    this.#started = running.started;
    this.#handle = running.handle;
  }

  static async start(plan: ContainerPlan): Promise<ServerContainer> {
    const port = await takePort();
    const container = new ServerContainer(plan, port, await run(plan, port));
    try {
      await container.#untilReady();
      return container;
    } catch (cause) {
      const said = (await container.lastLines()).join("\n");
      await container.remove();
      throw new Error(`a container of ${plan.image} did not become ready: ${(cause as Error).message}\n${said}`, { cause });
    }
  }

  get host(): string {
    return reachable(this.#started.getHost());
  }

  /** The signal goes to the server itself, which is the first process of its container; resolves when the container has ended. */
  async end(signal: "SIGKILL" | "SIGINT"): Promise<void> {
    if (!(await this.#isRunning())) return;
    await this.resume();
    await this.#handle.kill({ signal });
    const givenUpAt = performance.now() + shutdownPatienceMs;
    while (await this.#isRunning()) {
      if (performance.now() > givenUpAt) await this.#handle.kill({ signal: "SIGKILL" }).catch(ended);
      await sleep(pollMs);
    }
  }

  /** The same container again, with what is on its disk. */
  async startAgain(): Promise<void> {
    await this.#handle.start();
    await this.#untilReady();
  }

  /** Another container in its place, with nothing on its disk. */
  async startAnew(): Promise<void> {
    await this.#discard();
    const { started, handle } = await run(this.#plan, this.port);
    this.#started = started;
    this.#handle = handle;
    await this.#untilReady();
  }

  async pause(): Promise<void> {
    if (this.#paused) return;
    await this.#handle.pause();
    this.#paused = true;
  }

  async resume(): Promise<void> {
    if (!this.#paused) return;
    await this.#handle.unpause();
    this.#paused = false;
  }

  async lastLines(): Promise<readonly string[]> {
    const log = await this.#handle.logs({ stdout: true, stderr: true, tail: 20 });
    // Each line of the multiplexed stream begins with a header of eight bytes.
    return log
      .toString("utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.slice(8));
  }

  async remove(): Promise<void> {
    await this.#discard();
    returnPort(this.port);
  }

  async #discard(): Promise<void> {
    await this.resume();
    await this.#handle.remove({ force: true, v: true });
  }

  async #isRunning(): Promise<boolean> {
    return (await this.#handle.inspect()).State.Running;
  }

  async #untilReady(): Promise<void> {
    await this.#plan.untilReady({ host: this.host, port: this.port });
  }
}

function ended(): void {
  // It ended between the look and the signal, which is what was wanted.
}

/** Readiness is ours to find out: it is needed again after every restart, of which testcontainers does not know. */
class StartedAtAll extends StartupCheckStrategy {
  override async checkStartupState(): Promise<StartupStatus> {
    return "SUCCESS";
  }
}

async function run({ image, listens, equip }: ContainerPlan, port: number): Promise<{ started: StartedTestContainer; handle: Handle }> {
  const container = new GenericContainer(image);
  if (listens.in === "host network") container.withNetworkMode("host");
  else container.withExposedPorts({ container: listens.port, host: port });
  const started = await equip(container, port).withWaitStrategy(new StartedAtAll()).start();
  return { started, handle: (await dockerEngine()).container.getById(started.getId()) };
}
