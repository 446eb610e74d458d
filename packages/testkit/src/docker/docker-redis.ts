// Runs each node of a fleet as a container of the compose file's image.
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { clockShim, SHIM_FILE } from "../clock/clock-shim.js";
import { WallClock } from "../clock/wall-clock.js";
import { scratchFolder } from "../process/scratch-folder.js";
import { directivesOf } from "../redis/directives.js";
import type { RedisProvider, RedisServer, RedisServerSpec } from "../redis/provider.js";
import { realClock, type ServerClock, shiftClock } from "../redis/server-clock.js";
import { composeImage, describeImage } from "./engine.js";
import { type Place, ServerContainer, type ServerPlan } from "./server-container.js";

const REDIS_PORT = 6379;

export const dockerRedis: RedisProvider = {
  name: "docker",
  describe: async () => describeImage(await composeImage("redis")),
  start: async (spec) => {
    const [image, { clock, ...equipment }] = await Promise.all([composeImage("redis"), clockFor(spec)]);
    const { binds, Env } = equipment;
    const plan = {
      name: spec.name,
      image,
      innerPort: REDIS_PORT,
      readyLine: /Ready to accept connections/,
      program: (place: Place) => ({ Cmd: commandOf(spec, place), Env }),
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
    await (memory === "kept" ? this.startAgain() : this.startAnew());
  }

  async shiftClock(byMs: number): Promise<void> {
    const { Running, Paused } = await this.state();
    await shiftClock({ name: this.#name, clock: this.#clock, awakeAt: Running && !Paused ? this : undefined }, byMs);
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
  readonly binds: string[];
  readonly Env: string[];
}

/**
 * The library and the file with the offset are this machine's, so an engine elsewhere cannot move
 * clocks.
 */
async function clockFor({ name, clock }: RedisServerSpec): Promise<Equipment> {
  const fixed = (why: string): Equipment => ({ clock: { fixed: `cannot be moved here: ${why}` }, binds: [], Env: [] });
  if (clock === "real") return { clock: realClock, binds: [], Env: [] };
  const shim = await clockShim();
  if ("missing" in shim) return fixed(shim.missing);
  const folder = scratchFolder(`clock-${name}`);
  await chmod(folder, 0o755); // The server's account in the container is another.
  const wall = await WallClock.in(join(folder, "offset"));
  if ("missing" in wall) return fixed(wall.missing);
  return {
    clock: wall,
    binds: [`${folder}:/palisade-clock:ro`, `${join(shim.folder, SHIM_FILE)}:/palisade-shim/${SHIM_FILE}:ro`],
    Env: ["PALISADE_CLOCK_FILE=/palisade-clock/offset", `LD_PRELOAD=/palisade-shim/${SHIM_FILE}`],
  };
}
