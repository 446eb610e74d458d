// What the operator's page takes from those who write: PUTs while nobody looks, and while browsers
// watch ten thousand leases and five hundred refusals a second. Also the refusals themselves, so
// that both rows do the same work.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, type Locker } from "@palisade/lock";
import { RedisFleet } from "@palisade/testkit";
import type { Contestant } from "../measure/comparison.js";
import type { Context } from "../measure/part.js";
import { type Bench, httpContestant, prepare } from "./http-contestant.js";
import type { Requests } from "./load-client.js";
import type { ServerGroup } from "./servers.js";

const WRITERS = 64;
const LEASES = 10_000;
const BROWSERS = 2;
const REFUSED_PER_SECOND = 500;
const ROWS_ON_SCREEN = 36;
const TTL_MS = 600_000;
const headers = { "content-type": "application/json", "fencing-token": "7" };

export async function measurePage(bench: Bench, context: Context): Promise<void> {
  const title = `PUT over ${WRITERS} connections, the operator's page closed and open`;
  context.progress.begin(title);
  await using fleet = await RedisFleet.start({ nodes: 5, appendfsync: "no", clock: "real" });
  const nodes = fleet.nodes.map(({ directUrl }) => directUrl);
  const env = { PALISADE_PAGE: "on", PALISADE_REDIS_URLS: nodes.join(","), PALISADE_VERIFY: "off" };
  await using locker = createLocker({ nodes, ttlMs: TTL_MS, maxTtlMs: TTL_MS, waitMs: 60_000, label: "worker-7 (host b)" });
  // The first to come says how long the fleet's leases may be.
  await locker.ready();
  const group = await bench.servers.open("palisade", { env });
  try {
    await holdMany(locker, context.count(LEASES));
    const put: Requests = { method: "PUT", path: "/v1/resources/page/{c}-{i}", headers, body: '{"n":1}', each: 50, expect: [200, 201] };
    await prepare(bench, group, { connections: WRITERS, requests: put });
    const writes = httpContestant(bench, group, { connections: WRITERS, requests: put });
    // All leases are looked at when a browser comes, and then about twice a minute.
    const effort = context.effort({ rounds: 3, seconds: 60 });
    const remark = `${LEASES} leases held, ${REFUSED_PER_SECOND} refusals a second in both rows`;
    const compared = "perSecond";
    await context.compare({ id: "page", title, remark, effort, contestants: closedAndOpen(group, writes), compared });
    await context.compare({
      id: "page/alone",
      title: "The operator's page without writes",
      remark: `${remark}; processor times are of a second`,
      effort,
      contestants: closedAndOpen(group, resting(writes)),
      compared,
      warmUp: "one round",
    });
  } finally {
    await group.stop();
  }
}

async function holdMany(locker: Locker, count: number): Promise<void> {
  for (let start = 0; start < count; start += 500)
    await Promise.all(Array.from({ length: Math.min(500, count - start) }, (_, i) => locker.acquire(`orders/${start + i}`)));
}

/** What goes on until it is told to stop. */
type Company = (stopped: AbortSignal) => Promise<void>;

function closedAndOpen(group: ServerGroup, alone: Contestant): readonly Contestant[] {
  const browsers = Array.from({ length: BROWSERS }, () => browser(group));
  return [
    beside({ ...alone, name: `${group.name}, page closed` }, refusals(group)),
    beside({ ...alone, name: `${group.name}, page open in ${BROWSERS} browsers` }, [...refusals(group), ...browsers]),
  ];
}

/** What the page takes by itself is lost in what many writes take more or less each time. */
function resting(writes: Contestant): Contestant {
  return {
    ...writes,
    async round(seconds) {
      await sleep(seconds * 1_000);
      return { operations: seconds, seconds, latenciesUs: [seconds * 1_000_000] };
    },
  };
}

function beside(alone: Contestant, company: readonly Company[]): Contestant {
  return {
    ...alone,
    async round(seconds) {
      const stopped = new AbortController();
      const others = company.map((one) => one(stopped.signal));
      const round = await alone.round(seconds);
      stopped.abort();
      await Promise.all(others);
      return round;
    },
  };
}

function refusals({ urls: [url = ""] }: ServerGroup): readonly Company[] {
  const late = { method: "PUT", headers: { ...headers, "fencing-token": "6" }, body: "{}" };
  return [
    async (stopped) => {
      while (!stopped.aborted) {
        const some = Array.from({ length: REFUSED_PER_SECOND / 10 }, async () =>
          (await fetch(`${url}/v1/resources/page/0-0`, late)).arrayBuffer(),
        );
        await Promise.all([...some, sleep(100)]);
      }
    },
  ];
}

/** Asks what the page in a browser asks: its stream, and each second the rows on the screen. */
function browser({ adminUrl }: ServerGroup): Company {
  return async (stopped) => {
    const stream = await fetch(`${adminUrl}/page/live`, { signal: stopped });
    const rows = async () => (await fetch(`${adminUrl}/page/leases?count=${ROWS_ON_SCREEN}`)).arrayBuffer();
    const asking = (async () => {
      while (!stopped.aborted) await Promise.all([rows(), sleep(1_000, undefined, { signal: stopped }).catch(() => undefined)]);
    })();
    // The end of the round ends it.
    await stream.arrayBuffer().catch(() => undefined);
    await asking;
  };
}
