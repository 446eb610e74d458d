// One container, from its creation to its removal. It is created through the engine's own interface and not as a GenericContainer of testcontainers, which waits ten
// seconds for the ports of one that has died and forgets one that could not be started. It must not know what runs inside, nor wait for it.
import { isIP } from "node:net";
import { getReaper, LABEL_TESTCONTAINERS_SESSION_ID } from "testcontainers";
import { dockerEngine, type Engine, fetchImage, type Surroundings, surroundingsOf } from "./engine.js";
import { ownerLabels, sweepLeftovers } from "./leftovers.js";

/** Where clients find the server. */
export interface Place extends Surroundings {
  readonly port: number;
}

export interface ContainerSpec {
  readonly image: string;
  /** Where it listens when it has a network of its own. */
  readonly innerPort: number;
  /** In place of the image's own. */
  readonly entrypoint?: readonly string[];
  readonly command: readonly string[];
  /** It is made if the image has none of this name. */
  readonly workingFolder?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Folders and files of this machine, to be read only. */
  readonly mounts?: readonly { readonly source: string; readonly target: string }[];
}

type Handle = ReturnType<Engine["container"]["getById"]>;
type CreateOptions = Parameters<Engine["container"]["create"]>[0];

const frameHeaderBytes = 8;

export class Container {
  readonly #handle: Handle;
  readonly #innerPort: number;
  readonly #place: Place;

  private constructor(handle: Handle, innerPort: number, place: Place) {
    this.#handle = handle;
    this.#innerPort = innerPort;
    this.#place = place;
  }

  get host(): string {
    return this.#place.host;
  }

  /** It exists and does not run yet. */
  static async create(specify: (place: Place) => ContainerSpec, port: number): Promise<Container> {
    const engine = await dockerEngine();
    const [session] = await Promise.all([sessionId(engine), sweepLeftovers(engine)]);
    const place = { ...surroundingsOf(engine), port };
    const spec = specify(place);
    const labels = { ...ownerLabels, "org.testcontainers": "true", [LABEL_TESTCONTAINERS_SESSION_ID]: session };
    await fetchImage(engine, spec.image);
    const handle = await engine.container.create({ ...optionsOf(spec, place), Labels: labels });
    return new Container(handle, spec.innerPort, place);
  }

  /** Answers whether another program has the port. */
  async start(): Promise<"started" | "address in use"> {
    try {
      await this.#handle.start();
      return "started";
    } catch (cause) {
      if (/port is already allocated|address already in use/i.test((cause as Error).message)) return "address in use";
      throw cause;
    }
  }

  /** The signal goes to its first process; one that has ended needs none. */
  async signal(signal: "SIGKILL" | "SIGINT"): Promise<void> {
    await this.#handle.kill({ signal }).catch(unless(404, 409));
  }

  /** Its exit code, once it has ended; undefined when the caller stops waiting. */
  async ended(impatience?: AbortSignal): Promise<number | undefined> {
    const options = impatience === undefined ? {} : { abortSignal: impatience };
    try {
      const { StatusCode } = (await this.#handle.wait(options)) as { StatusCode: number };
      return StatusCode;
    } catch (cause) {
      if (impatience?.aborted === true) return undefined;
      throw cause;
    }
  }

  async pause(): Promise<void> {
    await this.#handle.pause();
  }

  async unpause(): Promise<void> {
    await this.#handle.unpause();
  }

  /** Where other containers find the server, while it runs. */
  async amongContainers(): Promise<{ readonly host: string; readonly port: number }> {
    if (this.#place.network === "shared") return this.#place;
    const { NetworkSettings } = await this.#handle.inspect();
    const [network] = Object.values(NetworkSettings.Networks);
    if (!network?.IPAddress) throw new Error("the container has no address among containers");
    return { host: network.IPAddress, port: this.#innerPort };
  }

  async lastLines(count = 20): Promise<readonly string[]> {
    const log = await this.#handle.logs({ stdout: true, stderr: true, tail: count });
    return textOf(log)
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-count);
  }

  /** Kills it if it runs, and takes its disk along. */
  async remove(): Promise<void> {
    await this.#handle.remove({ force: true, v: true }).catch(unless(404, 409));
  }
}

/** The log comes in frames: a header with the length, then the text. */
function textOf(log: Buffer): string {
  let text = "";
  for (let at = 0; at + frameHeaderBytes <= log.length; ) {
    const end = at + frameHeaderBytes + log.readUInt32BE(at + 4);
    text += log.toString("utf8", at + frameHeaderBytes, end);
    at = end;
  }
  return text;
}

/** For what had happened already when we asked for it. */
function unless(...statusCodes: readonly number[]): (cause: { statusCode?: number }) => void {
  return (cause) => {
    if (!statusCodes.includes(cause.statusCode ?? 0)) throw cause;
  };
}

/** What testcontainers' reaper knows our containers by. */
async function sessionId(engine: Engine): Promise<string> {
  try {
    return (await getReaper(engine)).sessionId;
  } catch (cause) {
    const why = `testcontainers' reaper did not start: ${(cause as Error).message}`;
    throw new Error(`${why}; TESTCONTAINERS_RYUK_DISABLED=true does without`, { cause });
  }
}

function optionsOf(spec: ContainerSpec, { host, port, network }: Place): CreateOptions {
  const { image, innerPort, entrypoint, command, workingFolder, environment = {}, mounts = [] } = spec;
  const binds = mounts.map(({ source, target }) => `${source}:${target}:ro`);
  const common = {
    Image: image,
    Cmd: [...command],
    Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    ...(entrypoint === undefined ? {} : { Entrypoint: [...entrypoint] }),
    ...(workingFolder === undefined ? {} : { WorkingDir: workingFolder }),
  };
  if (network === "shared") return { ...common, HostConfig: { Binds: binds, NetworkMode: "host" } };
  const inside = `${innerPort}/tcp`;
  // Only where we look for it, as far as that has a number: anyone may do anything on these servers.
  const binding = { HostIp: isIP(host) === 0 ? "" : host, HostPort: String(port) };
  return { ...common, ExposedPorts: { [inside]: {} }, HostConfig: { Binds: binds, PortBindings: { [inside]: [binding] } } };
}
