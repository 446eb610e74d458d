// Removes the containers of programs that were killed, when the next program starts containers: without testcontainers' reaper nobody else would.
// It must not touch a container whose program may still live.
import { hostname } from "node:os";
import type { Engine } from "./engine.js";

const hostLabel = "palisade.host";
const pidLabel = "palisade.pid";

/** On every container of this process. The host is part of it, because two machines may share an engine and not their process ids. */
export const ownerLabels: Readonly<Record<string, string>> = { [hostLabel]: hostname(), [pidLabel]: String(process.pid) };

let swept: Promise<void> | undefined;

/** Once per process. */
export function sweepLeftovers(engine: Engine): Promise<void> {
  swept ??= sweep(engine);
  return swept;
}

async function sweep({ container: containers }: Engine): Promise<void> {
  const listed = await containers.dockerode.listContainers({ all: true, filters: { label: [`${hostLabel}=${hostname()}`] } });
  const abandoned = listed.filter(({ Labels }) => !isAlive(Number(Labels[pidLabel])));
  await Promise.all(
    abandoned.map(({ Id }) =>
      containers
        .getById(Id)
        .remove({ force: true, v: true })
        .catch((cause: { statusCode?: number }) => {
          if (cause.statusCode !== 404 && cause.statusCode !== 409) throw cause; // Another process sweeps it at this moment.
        }),
    ),
  );
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
