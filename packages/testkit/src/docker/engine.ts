// The Docker engine, reached the way testcontainers finds it. It decides whether there is one and whether it has an image, and says so in a sentence;
// it must not start a container.
import { connect } from "node:net";
import { type ContainerRuntimeClient, getContainerRuntimeClient, ImageName } from "testcontainers";

const remedy = "start one (`sudo systemctl start docker`, Docker Desktop, colima) or point DOCKER_HOST at one";
const answerTimeoutMs = 5_000;

export type Engine = ContainerRuntimeClient;

export async function dockerEngine(): Promise<Engine> {
  try {
    const named = process.env.DOCKER_HOST;
    // testcontainers would go on to the next engine it knows: who names one means that one.
    if (named) await answers(named);
    return await getContainerRuntimeClient();
  } catch (cause) {
    const without =
      process.env.PALISADE_TEST_PROVIDER === "docker" ? ", or unset PALISADE_TEST_PROVIDER to use servers of this machine" : "";
    throw new Error(`no Docker engine answers (${(cause as Error).message}): ${remedy}${without}`, { cause });
  }
}

/** Where the containers of this engine are reached, and whether they can live in this machine's own network. That is so where the engine runs on this very Linux:
 * then servers in containers listen on loopback, and reach each other and our proxies there. Elsewhere (Docker Desktop, an engine of another machine, the engine
 * that runs the container we are in) they have networks of their own, and the engine publishes their ports. */
export interface Surroundings {
  readonly host: string;
  readonly network: "shared" | "own";
}

export function surroundingsOf({ info: { containerRuntime } }: Engine): Surroundings {
  // "localhost" may mean ::1 first, where nobody listens.
  const host = containerRuntime.host === "localhost" ? "127.0.0.1" : containerRuntime.host;
  const isHere = process.platform === "linux" && host === "127.0.0.1" && containerRuntime.operatingSystem !== "Docker Desktop";
  return { host, network: isHere ? "shared" : "own" };
}

/** One line for a human about what runs; the image is fetched if the engine does not have it. */
export async function describeImage(image: string): Promise<string> {
  const engine = await dockerEngine();
  await fetchImage(engine, image);
  const { operatingSystem, serverVersion } = engine.info.containerRuntime;
  return `${image} (containers of ${operatingSystem}, engine ${serverVersion})`;
}

/** What the engine does not have, it fetches. */
export async function fetchImage({ image: images }: Engine, image: string): Promise<void> {
  const name = ImageName.fromString(image);
  if (await images.exists(name)) return;
  process.stderr.write(`fetching ${image} (once)\n`);
  await images.pull(name);
  // testcontainers' pull ends well even when it could not fetch anything.
  if (!(await images.exists(name))) throw new Error(`the Docker engine does not get ${image}: \`docker pull ${image}\` tells why`);
}

async function answers(dockerHost: string): Promise<void> {
  if (!URL.canParse(dockerHost)) throw new Error(`DOCKER_HOST=${dockerHost} is no address`);
  const { protocol, hostname, port, pathname } = new URL(dockerHost);
  if (protocol === "npipe:") return;
  const target = protocol === "unix:" ? { path: pathname } : { host: hostname, port: Number(port) || 2375 };
  await new Promise<void>((resolve, reject) => {
    const refuse = (reason: string): void => reject(new Error(`nobody listens at DOCKER_HOST=${dockerHost}: ${reason}`));
    const socket = connect(target, () => resolve());
    socket.setTimeout(answerTimeoutMs, () => refuse(`no answer within ${answerTimeoutMs} ms`));
    socket.on("error", (cause) => refuse(cause.message));
    socket.on("connect", () => socket.destroy());
  });
}
