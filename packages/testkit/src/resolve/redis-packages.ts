// Fetches redis-server from the distribution's packages into the cache folder, without root.
import { builtOnce, distribution } from "./built-once.js";
import { fetchPackages, type UnpackedProgram, unpacked } from "./distribution-packages.js";
import type { Environment } from "./private-apt.js";

const redisServer = { what: "Redis server", packages: ["redis-server", "redis-tools"], path: "usr/bin/redis-server" };

export async function fetchRedisPackages(env: Environment): Promise<UnpackedProgram> {
  const build = (workshop: string): Promise<void> => fetchPackages(workshop, redisServer, env);
  const folder = await builtOnce(`redis-${await distribution()}`, build, env.PALISADE_CACHE_DIR);
  return await unpacked(folder, redisServer);
}
