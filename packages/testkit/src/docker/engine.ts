// The Docker engine as testcontainers finds it: whether one answers, where its containers are
// reached, and the images of docker-compose.yml.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { hostname } from "node:os";
import { type ContainerRuntimeClient, getContainerRuntimeClient, ImageName } from "testcontainers";
import { isRunning, thisProcess } from "../process/process-state.js";

const REMEDY = "start one (`sudo systemctl start docker`, Docker Desktop, colima) or point DOCKER_HOST at one";
const ANSWER_TIMEOUT_MS = 5_000;
const composeFile = new URL("../../../../docker-compose.yml", import.meta.url);

export type Engine = ContainerRuntimeClient;

export async function dockerEngine(): Promise<Engine> {
  const { DOCKER_HOST, PALISADE_TEST_PROVIDER } = process.env;
  try {
    // If nothing listens there, testcontainers would take the next engine that it knows.
    if (DOCKER_HOST) await answers(DOCKER_HOST);
    return await getContainerRuntimeClient();
  } catch (cause) {
    const without = PALISADE_TEST_PROVIDER === "docker" ? ", or unset PALISADE_TEST_PROVIDER to use servers of this machine" : "";
    throw new Error(`no Docker engine answers (${(cause as Error).message}): ${REMEDY}${without}`, { cause });
  }
}

async function answers(dockerHost: string): Promise<void> {
  try {
    const { protocol, hostname, port, pathname } = new URL(dockerHost);
    if (protocol === "npipe:") return;
    const socket = connect(protocol === "unix:" ? { path: pathname } : { host: hostname, port: Number(port) || 2375 });
    await once(socket, "connect", { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) }).finally(() => socket.destroy());
  } catch (cause) {
    throw new Error(`nothing listens at DOCKER_HOST=${dockerHost}: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Where the containers of an engine are reached, and whether they share this machine's network.
 * They do where the engine runs on this very Linux: servers then listen on loopback, and reach each
 * other and the proxies there. Elsewhere (Docker Desktop, an engine of another machine, the engine
 * that runs the container we are in) they have networks of their own, and the engine publishes
 * their ports.
 */
export interface Surroundings {
  readonly host: string;
  readonly network: "shared" | "own";
}

export function surroundingsOf({ info: { containerRuntime } }: Engine): Surroundings {
  // "localhost" may mean ::1 first, where nothing listens.
  const host = containerRuntime.host === "localhost" ? "127.0.0.1" : containerRuntime.host;
  const isHere = process.platform === "linux" && host === "127.0.0.1" && containerRuntime.operatingSystem !== "Docker Desktop";
  return { host, network: isHere ? "shared" : "own" };
}

/** The image that docker-compose.yml pins, so that what is tested is what is shipped. */
export async function composeImage(repository: "redis" | "postgres"): Promise<string> {
  const compose = await readFile(composeFile, "utf8");
  const image = new RegExp(`^\\s*image:\\s*(${repository}:\\S+)\\s*$`, "m").exec(compose)?.[1];
  if (image === undefined) throw new Error(`docker-compose.yml pins no image of ${repository}`);
  return image;
}

/** One line for a human about what runs. Fails if the engine cannot get the image. */
export async function describeImage(image: string): Promise<string> {
  const engine = await dockerEngine();
  await fetchImage(engine, image);
  const { operatingSystem, serverVersion } = engine.info.containerRuntime;
  return `${image} (containers of ${operatingSystem}, engine ${serverVersion})`;
}

export async function fetchImage({ image: images }: Engine, image: string): Promise<void> {
  const name = ImageName.fromString(image);
  if (await images.exists(name)) return;
  process.stderr.write(`fetching ${image} (once)\n`);
  await images.pull(name);
  // testcontainers' pull resolves even when it could not fetch anything.
  if (!(await images.exists(name))) throw new Error(`the Docker engine does not get ${image}: \`docker pull ${image}\` tells why`);
}

// Removes the containers of killed processes when the next process starts containers: without
// testcontainers' reaper nothing else would.
export const HOST_LABEL = "palisade.host";
export const OWNER_LABEL = "palisade.owner";

/** On every container of this process. The host, because two machines may share an engine. */
export const ownerLabels: Readonly<Record<string, string>> = { [HOST_LABEL]: hostname(), [OWNER_LABEL]: thisProcess };

let swept: Promise<void> | undefined;

/** Once per process. */
export function sweepLeftovers(engine: Engine): Promise<void> {
  swept ??= sweep(engine);
  return swept;
}

async function sweep({ container }: Engine): Promise<void> {
  const filters = { label: [`${HOST_LABEL}=${hostname()}`] };
  const listed = await container.dockerode.listContainers({ all: true, filters });
  const abandoned = listed.filter(({ Labels }) => !isRunning(Labels[OWNER_LABEL] ?? ""));
  await Promise.all(abandoned.map(({ Id }) => container.getById(Id).remove({ force: true, v: true }).catch(unless(404, 409))));
}

/** Ignored: the answer of an engine that what was asked for has happened already. */
export function unless(...statusCodes: readonly number[]): (cause: { statusCode?: number }) => void {
  return (cause) => {
    if (!statusCodes.includes(cause.statusCode ?? 0)) throw cause;
  };
}
