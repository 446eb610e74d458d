// The lock over TLS, with options and with instances of ioredis: ioredis makes the connection and the
// lock speaks on it (docs/decisions/0006). The instances stay their owner's.
import type { RedisNode } from "@palisade/testkit";
import { Redis } from "ioredis";
import { onTestFinished, vi } from "vitest";
import type { NodeSource } from "../../../src/protocol/node.js";
import { describe, expect, test } from "../lock-test.js";
import { certified, encrypting } from "./middlemen.js";

interface Way {
  readonly through: (node: RedisNode) => Promise<NodeSource>;
}

function untilTheEnd<Opened extends AsyncDisposable>(opened: Opened): Opened {
  onTestFinished(() => opened[Symbol.asyncDispose]());
  return opened;
}

/** It is used by nobody, and would connect by itself if it were. */
function instanceOf(options: Readonly<Record<"host" | "username" | "password", string>> & { port: number; tls: { ca: string } }): Redis {
  const instance = new Redis({ ...options, lazyConnect: true });
  onTestFinished(() => {
    expect(instance.status).toBe("wait");
    instance.disconnect();
  });
  return instance;
}

const placeOf = (url: string) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) });

const ways: Readonly<Record<string, Way>> = {
  TLS: {
    through: async (node) => ({ ...placeOf(untilTheEnd(await encrypting(node.url)).url), tls: { ca: certified.cert } }),
  },
  "instances with a user, over TLS": {
    through: async (node) => {
      await node.cli("ACL", "SETUSER", "lock", "on", ">s3cret", "~*", "&*", "+@all");
      const way = placeOf(untilTheEnd(await encrypting(node.url)).url);
      return instanceOf({ ...way, username: "lock", password: "s3cret", tls: { ca: certified.cert } });
    },
  },
};

describe("over nodes that are reached", () => {
  test.for(Object.entries(ways))(
    "T1 L2 W1 through %s a lease is granted, refused to others, renewed, handed to a waiter, and taken again after a cut",
    async ([, { through }], { fleet, open }) => {
      const commands = vi.spyOn(Redis.prototype, "evalsha");
      const { nodes } = await fleet({ nodes: 3 });
      const sources = await Promise.all(nodes.map(through));
      const [first, second] = [open({ nodes: sources }), open({ nodes: sources })];
      const lease = await first.acquire("orders/42");
      expect(await second.tryAcquire("orders/42")).toMatchObject({ ok: false, reason: "held" });
      expect(await lease.extend(9_000)).toMatchObject({ outcome: "renewed" });
      const waiting = second.acquire("orders/42", { waitMs: 60_000 });
      await expect.poll(async () => (await Promise.all(nodes.map(channelsOf))).every((channels) => channels.length > 0)).toBe(true);
      expect((await lease.release()).outcome).toBe("free");
      const next = await waiting;
      expect(next.token).toBeGreaterThan(lease.token);
      for (const node of nodes) node.cut();
      await expect.poll(async () => (await next.extend()).outcome).toBe("renewed");
      await next.release();
      expect((await first.acquire("orders/42")).token).toBeGreaterThan(next.token);
      expect(commands).not.toHaveBeenCalled();
    },
  );
});

async function channelsOf(node: RedisNode): Promise<readonly unknown[]> {
  return (await node.cli("PUBSUB", "CHANNELS", "*:inbox:*")) as readonly unknown[];
}
