// Runs each node of a fleet as a container of the compose file's image.
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { clockShim, SHIM_FILE } from "../clock/clock-shim.js";
import { WallClock } from "../clock/wall-clock.js";
import { scratchFolder } from "../process/scratch-folder.js";
import { directivesOf } from "../redis/program.js";
import type { RedisProvider, RedisServer, RedisServerSpec } from "../redis/provider.js";
import { realClock, type ServerClock, serverClock, shiftClock } from "../redis/ready.js";
import { composeImage, describeImage } from "./engine.js";
import { type Place, ServerContainer, type ServerPlan } from "./server-container.js";

const REDIS_PORT = 6379;

export const dockerRedis: RedisProvider = {
  name: "docker",
  describe: async () => describeImage(await composeImage("redis")),
  start: async (spec) => {
    const { clock, binds = [], Env = [] } = await clockFor(spec);
    const plan: ServerPlan = {
      name: spec.name,
      image: await composeImage("redis"),
      innerPort: REDIS_PORT,
      readyLine: /Ready to accept connections/,
      program: (place) => ({ Cmd: commandOf(spec, place), Env }),
      binds,
    };
    return await new DockerRedis(plan, clock).start();
  },
};

class DockerRedis extends ServerContainer implements RedisServer {
  readonly pid = undefined;
  readonly #name: string;
  readonly #clock: ServerClock;

  constructor(plan: ServerPlan, clock: ServerClock) {
    super(plan);
    this.#name = plan.name;
    this.#clock = clock;
  }

  async restart({ memory }: { readonly memory: "kept" | "forgotten" }): Promise<void> {
    await this.kill();
    await this.startAgain(memory);
  }

  async shiftClock(byMs: number): Promise<void> {
    const { Running, Paused } = await this.state();
    const awakeAt = Running && !Paused ? this : undefined;
    await shiftClock({ name: this.#name, clock: this.#clock, awakeAt }, byMs);
  }
}

function commandOf(spec: RedisServerSpec, place: Place): string[] {
  const shared = place.network === "shared";
  const directives = {
    ...(shared ? { bind: "127.0.0.1", port: String(place.port) } : { port: String(REDIS_PORT) }),
    // A client that comes through a published port does not come from the server's own loopback.
    "protected-mode": "no",
    ...directivesOf(spec, place),
  };
  return ["redis-server", ...Object.entries(directives).flatMap(([name, value]) => [`--${name}`, value])];
}

interface Equipment {
  readonly clock: ServerClock;
  readonly binds?: readonly string[];
  readonly Env?: string[];
}

/** Library and offset are files of this machine, so an engine elsewhere moves no clock. */
async function clockFor({ name, clock }: RedisServerSpec): Promise<Equipment> {
  if (clock === "real") return { clock: realClock };
  const folder = scratchFolder(`clock-${name}`);
  await chmod(folder, 0o755); // The server's account in the container is another.
  const shim = await clockShim();
  const wall = await WallClock.in(join(folder, "offset"));
  if ("missing" in shim || "missing" in wall) return { clock: serverClock(wall) };
  return {
    clock: wall,
    binds: [`${folder}:/palisade-clock:ro`, `${join(shim.folder, SHIM_FILE)}:/palisade-shim/${SHIM_FILE}:ro`],
    Env: ["PALISADE_CLOCK_FILE=/palisade-clock/offset", `LD_PRELOAD=/palisade-shim/${SHIM_FILE}`],
  };
}
