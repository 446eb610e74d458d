// The faults of a soak: what happens to every system in production now and then, one at a time, in
// turn. Leaks hide in the error paths; no promise is judged here.
import { setTimeout as sleep } from "node:timers/promises";
import { waited } from "../history/records.js";
import type { SoakEnvironment } from "../servers/environment.js";

interface Scene {
  readonly environment: SoakEnvironment;
  /** Counts the rounds through the list. */
  readonly round: number;
}

type Inject = (scene: Scene) => Promise<unknown>;

/** The last node is never restarted, to show a long life; the last client is never stopped. */
const disturbances: readonly (readonly [string, Inject])[] = [
  ["node restarted", async (scene) => await nodeOf(scene, 1).restart()],
  ["gateway's connections to Postgres ended", async ({ environment }) => await environment.ask(TERMINATE)],
  ["node slow", async (scene) => await briefly(nodeOf(scene), (node) => node.slow(40), 2_000)],
  ["connections to the gateway cut", async ({ environment }) => environment.gatewayLink.cut()],
  ["connections to a node cut", async (scene) => nodeOf(scene).cut()],
  ["client stopped", stopClient],
  ["node unreachable", async (scene) => await briefly(nodeOf(scene), (node) => node.partition(), 1_500)],
  ["all connections to all nodes cut", async ({ environment }) => environment.fleet.nodes.map((node) => node.cut())],
];

const TERMINATE =
  "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name <> 'soak'";

interface Disturbing {
  readonly everyMs: number;
  readonly onDisturbance: (what: string) => void;
}

/** Until the signal comes; resolves when everything is undone. */
export async function disturb(environment: SoakEnvironment, { everyMs, onDisturbance }: Disturbing, over: AbortSignal): Promise<void> {
  for (let turn = 0; await waited(everyMs, over); turn++) {
    const [what, inject] = disturbances[turn % disturbances.length] as (typeof disturbances)[number];
    onDisturbance(what);
    await inject({ environment, round: Math.floor(turn / disturbances.length) });
  }
}

type Node = SoakEnvironment["fleet"]["nodes"][number];

function nodeOf({ environment, round }: Scene, spared = 0): Node {
  const { nodes } = environment.fleet;
  return nodes[round % (nodes.length - spared)] as Node;
}

async function briefly(node: Node, fault: (node: Node) => unknown, forMs: number): Promise<void> {
  await fault(node);
  await sleep(forMs);
  await node.heal();
}

async function stopClient({ environment, round }: Scene): Promise<void> {
  const { all } = environment.workers;
  const client = all[round % (all.length - 1)];
  client?.stop();
  await sleep(1_200);
  client?.continue();
}
