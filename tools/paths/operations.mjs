// The operations whose paths ARCHITECTURE.md lists, each run on real servers of its own.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { heard, NoAnswer } from "./coverage.mjs";

const REPETITIONS = 5;
/** Long enough for the slowest machine: no lease of a traced operation is renewed or runs out. */
const TTL_MS = 60_000;
/** A node that lost its memory waits so long before it votes again. */
const SHORT_TTL_MS = 300;

/**
 * @typedef {object} Workspace
 * @property {typeof import("../../packages/lock/dist/index.js")} lock
 * @property {typeof import("../../packages/gateway/dist/index.js")} gateway
 * @property {typeof import("../../packages/testkit/dist/index.js")} testkit
 * @property {import("./coverage.mjs").Coverage} coverage
 * @typedef {import("../../packages/lock/dist/index.js").Locker} Locker
 * @typedef {Readonly<Record<string, import("./coverage.mjs").Files>>} Paths
 */

let names = 0;
const freshName = () => `traced/${++names}`;

/** @param {Workspace} workspace @returns {Promise<Paths>} the files of each operation */
export async function tracePaths(workspace) {
  const fleet = await workspace.testkit.RedisFleet.start({ nodes: 5 });
  try {
    const leases = await traceLeases(workspace, fleet);
    const nodeReturn = await traceReturn(workspace, fleet);
    return { ...leases, ...nodeReturn, ...(await traceWrites(workspace, fleet)) };
  } finally {
    await fleet.stop();
  }
}

/**
 * @param {Workspace} workspace
 * @param {import("../../packages/testkit/dist/index.js").RedisFleet} fleet
 */
async function traceLeases({ lock, coverage }, fleet) {
  const [first, second] = [0, 1].map(() => lock.createLocker({ nodes: fleet.urls, ttlMs: TTL_MS, nodeTimeoutMs: 5_000 }));
  if (first === undefined || second === undefined) throw new Error("two lockers were made");
  /** Every node has answered: none of it is left to run in what follows. */
  const take = async () => {
    const settled = nextEvent(lock.channelNames.attempt, ({ outcome }) => outcome === "won");
    const lease = await first.acquire(freshName());
    await settled;
    return lease;
  };
  try {
    for (const locker of [first, second]) for (let i = 0; i < 3; i++) await locker.using(freshName(), async () => {});
    const acquire = await coverage.filesRunBy({
      repetitions: REPETITIONS,
      prepare: async () => freshName(),
      operation: (name) => first.acquire(name),
    });
    const release = await coverage.filesRunBy({ repetitions: REPETITIONS, prepare: take, operation: (lease) => lease.release() });
    const handOver = await coverage.filesRunBy({
      repetitions: REPETITIONS,
      prepare: async () => {
        const lease = await take();
        // Refused at once, and again, with a ticket, when a quorum of nodes can tell it.
        let refusals = 0;
        const listens = nextEvent(lock.channelNames.attempt, ({ outcome }) => outcome === "held" && ++refusals === 2);
        const next = second.acquire(lease.resources, { waitMs: TTL_MS });
        await listens;
        return { lease, next };
      },
      operation: ({ lease, next }) => Promise.all([lease.release(), next]),
    });
    return { acquire, release, "hand-over": handOver };
  } finally {
    await Promise.all([first.close(), second.close()]);
  }
}

/**
 * @param {Workspace} workspace
 * @param {import("../../packages/testkit/dist/index.js").RedisFleet} fleet
 */
async function traceReturn({ lock, coverage }, fleet) {
  const locker = lock.createLocker({ nodes: fleet.urls, maxTtlMs: SHORT_TTL_MS, namespace: "node-return" });
  try {
    await locker.ready();
    const nodeReturn = await coverage.filesRunBy({
      repetitions: REPETITIONS,
      prepare: async () => ({ admitted: nextEvent(lock.channelNames.node, ({ kind, way }) => kind === "admitted" && way === "rebuilt") }),
      operation: async ({ admitted }) => {
        await fleet.node("n2").restart({ forget: true });
        await admitted;
      },
    });
    return { "node's return": nodeReturn };
  } finally {
    await locker.close();
  }
}

/**
 * @param {Workspace} workspace
 * @param {import("../../packages/testkit/dist/index.js").RedisFleet} fleet
 */
async function traceWrites({ lock, gateway, testkit, coverage }, fleet) {
  const postgres = await testkit.PostgresServer.start();
  const namespace = "writes";
  const locker = lock.createLocker({ nodes: fleet.urls, ttlMs: TTL_MS, namespace });
  const server = gateway.createGateway({
    databaseUrl: postgres.url,
    redisUrls: fleet.urls,
    namespace,
    port: 0,
    adminPort: 0,
    logLevel: "silent",
  });
  try {
    await server.listen();
    const put = async (/** @type {string} */ name, /** @type {number} */ token) => {
      const headers = { "Content-Type": "application/json", "Fencing-Token": String(token) };
      const { status } = await fetch(`${server.url}/v1/resources/${name}`, { method: "PUT", headers, body: '{"n":1}' });
      return status;
    };
    const lease = () => locker.acquire(freshName());
    const written = async () => {
      const { resources, token } = await lease();
      expectStatus(201, await put(resources[0] ?? "", token));
      return { name: resources[0] ?? "", token };
    };
    const tooLate = () => written().then(({ name, token }) => put(name, token - 1));
    for (let i = 0; i < 3; i++) await heard(async () => expectStatus(412, await tooLate()));
    const first = await coverage.filesRunBy({
      repetitions: REPETITIONS,
      prepare: lease,
      operation: async ({ resources, token }) => expectStatus(201, await put(resources[0] ?? "", token)),
    });
    const stale = await coverage.filesRunBy({
      repetitions: REPETITIONS,
      prepare: written,
      operation: async ({ name, token }) => expectStatus(412, await put(name, token - 1)),
    });
    return { PUT: first, "stale PUT": stale };
  } finally {
    await Promise.all([server.close(), locker.close()]);
    await postgres.stop();
  }
}

/** @param {number} wanted @param {number} status */
function expectStatus(wanted, status) {
  if (status !== wanted) throw new (status === 503 ? NoAnswer : Error)(`the gateway answered ${status}, not ${wanted}`);
}

/** @param {string} channel @param {(event: any) => boolean} isWanted @returns {Promise<unknown>} */
function nextEvent(channel, isWanted) {
  return new Promise((resolve) => {
    const listener = (/** @type {unknown} */ event) => {
      if (!isWanted(event)) return;
      unsubscribe(channel, listener);
      resolve(event);
    };
    subscribe(channel, listener);
  });
}
