// What the doctor finds where a node refuses what the lock needs: each command of the requests is
// executed for it, by a lock that is taken and released.
import { describe, expect, test } from "./lock-test.js";

/** Of the requests; the others belong to the admission of a node. */
const OF_REQUESTS = "evalsha set incr get exists pttl pexpire del hset publish zadd zcard zrange zrank zrem zscore".split(" ");
const OF_ADMISSIONS = "eval info time hmget hget hdel hset del".split(" ");

/** The nodes for a user without this command. */
async function without(command: string, nodes: readonly { cli(...words: string[]): Promise<unknown> }[], urls: readonly string[]) {
  const user = `no-${command}`;
  await Promise.all(nodes.map((node) => node.cli("ACL", "SETUSER", user, "on", ">p", "~*", "&*", "+@all", `-${command}`)));
  return urls.map((url) => url.replace("redis://", `redis://${user}:p@`));
}

const missing = expect.objectContaining({ severity: "error", code: "acl", message: expect.stringMatching(/NOPERM: the user lacks/) });

describe("the doctor", () => {
  test("names each missing right on nodes that are admitted", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    for (const command of OF_REQUESTS) {
      await open({ nodes: urls, namespace: command }).ready();
      const poor = open({ nodes: await without(command, nodes, urls), namespace: command });
      expect(await poor.fleet.doctor(), command).toContainEqual(missing);
    }
  });

  test("names each missing right on new nodes, and so does the refusal of a call", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    for (const command of OF_ADMISSIONS) {
      const locker = open({ nodes: await without(command, nodes, urls), namespace: command, waitMs: 200 });
      const startedAt = performance.now();
      expect(await locker.fleet.doctor(), command).toContainEqual(missing);
      await expect(locker.acquire("r")).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: expect.stringContaining("NOPERM") });
      // Not twice the time of a first contact.
      expect(performance.now() - startedAt).toBeLessThan(15_000);
    }
  });

  const refusals = [
    ["maxmemory", "OOM: out of memory (maxmemory) and refuses writes"],
    ["min-replicas-to-write", "NOREPLICAS: refuses writes because too few replicas follow it"],
  ] as const;
  test.for(refusals)(
    "says why new nodes refuse to be founded, and so does a call, until they do not: %s",
    async ([setting, cause], { fleet, open }) => {
      const { urls, nodes } = await fleet({ nodes: 3 });
      await Promise.all(nodes.map((node) => node.cli("CONFIG", "SET", setting, "1")));
      const locker = open({ nodes: urls, waitMs: 200 });
      const told = expect.stringContaining(cause);
      await expect(locker.acquire("r")).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: told });
      await expect(locker.ready()).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: told });
      const findings = (await locker.fleet.doctor()).filter(({ severity }) => severity === "error");
      expect(findings).toEqual(["n1", "n2", "n3"].map((node) => expect.objectContaining({ node, code: "refuses_writes", message: told })));
      await Promise.all(nodes.map((node) => node.cli("CONFIG", "SET", setting, "0")));
      await expect.poll(async () => (await locker.tryAcquire("r")).ok, { timeout: 30_000 }).toBe(true);
    },
  );

  test("says that releases are not heard, and that writes are refused", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    await open({ nodes: urls }).ready();
    expect(await open({ nodes: await without("subscribe", nodes, urls) }).fleet.doctor()).toContainEqual(
      expect.objectContaining({ code: "subscription" }),
    );
    const locker = open({ nodes: urls });
    expect((await locker.fleet.doctor()).filter(({ severity }) => severity !== "info")).toEqual([]);
    await nodes[0]?.cli("CONFIG", "SET", "min-replicas-to-write", "1");
    expect(await locker.fleet.doctor()).toContainEqual(expect.objectContaining({ severity: "error", code: "refuses_writes" }));
  });
});
