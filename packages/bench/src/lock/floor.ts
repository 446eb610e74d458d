// What any lock over N masters costs at least: one EVALSHA to each, an answer of the majority, no token, no retry, no checks. The yardstick of the others.
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { type Contestant, ttlMs } from "./contestant.js";

const takeScript = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
const giveScript = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

export async function enterFloor(urls: readonly string[]): Promise<Contestant> {
  const clients = urls.map((url) => new Redis(url));
  const [takeSha, giveSha] = (await Promise.all([...clients.map((client) => client.script("LOAD", takeScript))]).then(async ([sha]) => [
    sha,
    (await Promise.all(clients.map((client) => client.script("LOAD", giveScript))))[0],
  ])) as [string, string];
  const quorum = Math.floor(urls.length / 2) + 1;
  return {
    name: "floor: EVALSHA, majority",
    tokens: "none",
    async cycle(resource) {
      const owner = randomBytes(16).toString("base64url");
      await majority(clients, quorum, (client) => client.evalsha(takeSha, 1, resource, owner, ttlMs));
      await majority(clients, quorum, (client) => client.evalsha(giveSha, 1, resource, owner));
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
