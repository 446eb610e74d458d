// Runs each node of a fleet as a container of the compose file's image. It must not know about proxies or other nodes.
import { randomUUID } from "node:crypto";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { clockShim, SHIM_FILE } from "../clock/clock-shim.js";
import { WallClock } from "../clock/wall-clock.js";
import { scratchFolder } from "../process/scratch-folder.js";
import type { Address, RedisProvider, RedisServer, RedisServerSpec } from "../redis/provider.js";
import { serverTimeMs, untilReady } from "../redis/ready.js";
import type { ContainerSpec, Place } from "./container.js";
import { describeImage } from "./engine.js";
import { composeImage } from "./images.js";
import { ServerContainer } from "./server-container.js";

const redisPort = 6379;
const clockToleranceMs = 5_000;

export const dockerRedis: RedisProvider = {
  name: "docker",
  describe: async () => describeImage(await composeImage("redis")),
  start: async (spec) => DockerRedisServer.start(spec),
};

type Clock = { readonly wall: WallClock; readonly equipment: Pick<ContainerSpec, "mounts" | "environment"> } | { readonly missing: string };

class DockerRedisServer implements RedisServer {
  readonly pid = undefined;
  readonly #container: ServerContainer;
  readonly #name: string;
  readonly #clock: Clock;

  private constructor(name: string, container: ServerContainer, clock: Clock) {
    this.#name = name;
    this.#container = container;
    this.#clock = clock;
  }

  static async start(spec: RedisServerSpec): Promise<DockerRedisServer> {
    const [image, clock] = await Promise.all([composeImage("redis"), clockFor(spec)]);
    const folder = `/palisade-${randomUUID()}`;
    const container = await ServerContainer.start({
      name: spec.name,
      container: (place) => ({
        image,
        innerPort: redisPort,
        workingFolder: folder,
        command: commandOf(spec, place),
        ...("missing" in clock ? {} : clock.equipment),
      }),
      // A Redis shows where it was started from, and from there only this one was.
      untilReady: (address, failure) => untilReady({ ...address, signature: `executable:${folder}/redis-server\r\n`, failure }),
    });
    return new DockerRedisServer(spec.name, container, clock);
  }

  get host(): string {
    return this.#container.host;
  }

  get port(): number {
    return this.#container.port;
  }

  async kill(): Promise<void> {
    await this.#container.kill();
  }

  async restart({ memory }: { readonly memory: "kept" | "forgotten" }): Promise<void> {
    await this.#container.kill();
    await (memory === "kept" ? this.#container.startAgain() : this.#container.startAnew());
  }

  async pause(): Promise<void> {
    await this.#container.pause();
  }

  async resume(): Promise<void> {
    await this.#container.resume();
  }

  async shiftClock(byMs: number): Promise<void> {
    if ("missing" in this.#clock) throw new Error(`the clock of ${this.#name} ${this.#clock.missing}`);
    this.#clock.wall.shift(byMs);
    // A paused or killed server looks at its clock when it runs again.
    if (!this.#container.awake) return;
    const expected = Date.now() + this.#clock.wall.offsetMs;
    const shown = await serverTimeMs({ host: this.host, port: this.port });
    if (Math.abs(shown - expected) > clockToleranceMs) {
      throw new Error(`the clock of ${this.#name} did not move: it shows ${shown}, expected about ${expected}`);
    }
  }

  async amongServers(): Promise<Address> {
    return await this.#container.amongContainers();
  }

  async lastLines(): Promise<readonly string[]> {
    return this.#container.lastLines();
  }

  async stop(): Promise<void> {
    await this.#container.remove();
  }
}

function commandOf({ appendfsync, config }: RedisServerSpec, place: Place): string[] {
  // A cluster tells its clients where it is, and behind a published port it cannot know.
  const announced = { "cluster-announce-ip": place.host, "cluster-announce-port": String(place.port) };
  const directives: Record<string, string> = {
    save: "",
    appendonly: "yes",
    appendfsync,
    ...(place.network === "shared" ? { bind: "127.0.0.1", port: String(place.port) } : { port: String(redisPort) }),
    // Whoever comes through a published port does not come from the server's own loopback.
    "protected-mode": "no",
    "enable-debug-command": "yes",
    ...(place.network === "own" && config["cluster-enabled"] === "yes" ? announced : {}),
    ...config,
  };
  return ["redis-server", ...Object.entries(directives).flatMap(([name, value]) => [`--${name}`, value])];
}

/** The library and the file with the offset are this machine's, so the engine has to be, too. */
async function clockFor({ name, clock }: RedisServerSpec): Promise<Clock> {
  if (clock === "real") return { missing: 'is real: start the fleet with clock "shiftable" to move it' };
  const shim = await clockShim();
  if ("missing" in shim) return { missing: `cannot be moved here: ${shim.missing}` };
  const folder = scratchFolder(`clock-${name}`);
  await chmod(folder, 0o755); // The server's account in the container is another.
  const wall = await WallClock.in(join(folder, "offset"));
  if ("missing" in wall) return { missing: `cannot be moved here: ${wall.missing}` };
  const mounts = [
    { source: folder, target: "/palisade-clock" },
    { source: join(shim.folder, SHIM_FILE), target: `/palisade-shim/${SHIM_FILE}` },
  ];
  const environment = { PALISADE_CLOCK_FILE: "/palisade-clock/offset", LD_PRELOAD: `/palisade-shim/${SHIM_FILE}` };
  return { wall, equipment: { mounts, environment } };
}
