// The lock over every way to a node. Over TLS and where sentinels name the server, ioredis makes
// the connection and the lock speaks on it; through a cluster each command is one of ioredis
// (docs/adr/0091).
import type { RedisNode } from "@palisade/testkit";
import { Cluster, Redis } from "ioredis";
import { onTestFinished, vi } from "vitest";
import type { NodeSource } from "../../../src/options/node-source.js";
import { describe, expect, test } from "../lock-test.js";
import { certified, encrypting, naming } from "./middlemen.js";

interface Way {
  readonly through: (node: RedisNode) => Promise<NodeSource>;
  readonly config?: Readonly<Record<string, string>>;
  /** Whether scripts are called by commands of ioredis. */
  readonly isAskedByIoredis?: true;
}

function untilTheEnd<Opened extends AsyncDisposable>(opened: Opened): Opened {
  onTestFinished(() => opened[Symbol.asyncDispose]());
  return opened;
}

const placeOf = (url: string) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) });

const ways: Readonly<Record<string, Way>> = {
  TLS: {
    through: async (node) => ({ ...placeOf(untilTheEnd(await encrypting(node.url)).url), tls: { ca: certified.cert } }),
  },
  "a sentinel": {
    through: async (node) => ({ sentinels: [placeOf(untilTheEnd(await naming(node.url)).url)], name: `group ${node.name}` }),
  },
  "an instance with TLS": {
    async through(node) {
      const own = new Redis({ ...placeOf(untilTheEnd(await encrypting(node.url)).url), tls: { ca: certified.cert }, lazyConnect: true });
      onTestFinished(() => own.disconnect());
      return own;
    },
  },
  "a cluster": {
    isAskedByIoredis: true,
    config: { "cluster-enabled": "yes" },
    async through(node) {
      await node.cli("CLUSTER", "ADDSLOTSRANGE", 0, 16383);
      // A cluster lets two seconds pass before it serves anybody.
      await node.shiftClock(3_000);
      await expect.poll(async () => String(await node.cli("CLUSTER", "INFO"))).toContain("cluster_state:ok");
      const own = new Cluster([placeOf(node.directUrl)]);
      onTestFinished(() => own.disconnect());
      return own;
    },
  },
};

describe("over nodes that are reached", () => {
  test.for(Object.entries(ways))(
    "T1 L2 W1 through %s a lease is granted, refused to others, renewed, handed to a waiter, and taken again after a cut",
    async ([, { through, config = {}, isAskedByIoredis = false }], { fleet, open }) => {
      const commands = [Redis, Cluster].map(({ prototype }) => vi.spyOn(prototype as Redis, "evalsha"));
      const { nodes } = await fleet({ nodes: 3, config });
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
      expect(commands.some((command) => command.mock.calls.length > 0)).toBe(isAskedByIoredis);
    },
  );
});

async function channelsOf(node: RedisNode): Promise<readonly unknown[]> {
  return (await node.cli("PUBSUB", "CHANNELS", "*:inbox:*")) as readonly unknown[];
}
