// The least that any lock over N masters costs: one EVALSHA to each, answers of a majority, no
// token, no retry, no checks. The libraries are compared with it.
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { type Contestant, TTL_MS } from "./contestant.js";

const ACQUIRE = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

export async function openFloor(urls: readonly string[]): Promise<Contestant> {
  const clients = urls.map((url) => new Redis(url));
  const load = async (script: string): Promise<string> => {
    const hashes = await Promise.all(clients.map((client) => client.script("LOAD", script)));
    return String(hashes[0]);
  };
  const acquireHash = await load(ACQUIRE);
  const releaseHash = await load(RELEASE);
  const quorum = Math.floor(urls.length / 2) + 1;
  return {
    name: "floor: EVALSHA, majority",
    tokens: "none",
    async acquireAndRelease(resource) {
      const owner = randomBytes(16).toString("base64url");
      await majority(clients, quorum, (client) => client.evalsha(acquireHash, 1, resource, owner, TTL_MS));
      await majority(clients, quorum, (client) => client.evalsha(releaseHash, 1, resource, owner));
    },
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}

function majority(clients: readonly Redis[], quorum: number, ask: (client: Redis) => Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    let answered = 0;
    for (const client of clients) {
      ask(client).then(() => {
        answered += 1;
        if (answered === quorum) resolve();
      }, reject);
    }
  });
}
