// Removes the containers of killed processes when the next process starts containers: without
// testcontainers' reaper nothing else would.
import { hostname } from "node:os";
import { isRunning, thisProcess } from "../process/process-state.js";
import type { Engine } from "./engine.js";

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
