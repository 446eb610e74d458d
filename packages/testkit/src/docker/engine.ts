// The Docker engine, reached the way testcontainers finds it. It decides whether there is one, and says so in a sentence; it must not start a container.
import { type ContainerRuntimeClient, getContainerRuntimeClient } from "testcontainers";

const remedy =
  "start one (`sudo systemctl start docker`, Docker Desktop, colima), point DOCKER_HOST at one, or unset PALISADE_TEST_PROVIDER to use servers of this machine";

export async function dockerEngine(): Promise<ContainerRuntimeClient> {
  try {
    return await getContainerRuntimeClient();
  } catch (cause) {
    throw new Error(`no Docker engine answers (${(cause as Error).message}): ${remedy}`, { cause });
  }
}

/** "localhost" may mean ::1 first, where a published port need not be. */
export function reachable(host: string): string {
  return host === "localhost" ? "127.0.0.1" : host;
}

export async function describeImage(image: string): Promise<string> {
  const { info } = await dockerEngine();
  return `${image} (containers of ${info.containerRuntime.operatingSystem}, engine ${info.containerRuntime.serverVersion})`;
}
