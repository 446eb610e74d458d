// What happens to every system in production now and then, one thing at a time, in turn: a server is restarted, connections are cut, a node is slow or cannot be
// reached, the database drops its clients, a process stands still. Gentle: leaks live in the error paths, and no promise is tested here.
import { setTimeout as sleep } from "node:timers/promises";
import type { Crowd } from "./crowd.js";
import type { Stage } from "./stage.js";

export interface Disturbance {
  readonly atMs: number;
  readonly what: string;
}

interface Scene {
  readonly stage: Stage;
  readonly crowd: Crowd;
  /** Counts the rounds through the list. */
  readonly round: number;
}

type Happening = (scene: Scene) => Promise<unknown>;

/** The last node is never restarted, so that one shows what a long life does; the last client never stands still. */
const happenings: readonly (readonly [string, Happening])[] = [
  ["node restarted", async (scene) => await victim(scene, 1).restart()],
  ["gateway's connections to Postgres ended", async ({ stage }) => await stage.ask(terminate)],
  ["node slow", async (scene) => await passing(victim(scene), (node) => node.slow(40), 2_000)],
  ["connections to the gateway cut", async ({ stage }) => stage.way.cut()],
  ["connections to a node cut", async (scene) => victim(scene).cut()],
  ["client stopped", stopClient],
  ["node unreachable", async (scene) => await passing(victim(scene), (node) => node.partition(), 1_500)],
  ["all connections to all nodes cut", async ({ stage }) => stage.fleet.nodes.map((node) => node.cut())],
];

const terminate =
  "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name <> 'soak'";

/** Goes on until the signal comes, and ends with everything undone. */
export async function disturb(
  { stage, crowd, everyMs, onDisturbance }: Omit<Scene, "round"> & { everyMs: number; onDisturbance: (what: string) => void },
  signal: AbortSignal,
): Promise<void> {
  for (let turn = 0; ; turn++) {
    if (!(await pause(everyMs, signal))) return;
    const [what, happen] = happenings[turn % happenings.length] as (typeof happenings)[number];
    onDisturbance(what);
    await happen({ stage, crowd, round: Math.floor(turn / happenings.length) });
  }
}

type Node = Stage["fleet"]["nodes"][number];

function victim({ stage, round }: Scene, spared = 0): Node {
  const { nodes } = stage.fleet;
  return nodes[round % (nodes.length - spared)] as Node;
}

async function passing(node: Node, fault: (node: Node) => unknown, forMs: number): Promise<void> {
  await fault(node);
  await sleep(forMs);
  await node.heal();
}

async function stopClient({ crowd, round }: Scene): Promise<void> {
  const client = round % (crowd.clients.length - 1);
  crowd.signal(client, "SIGSTOP");
  await sleep(1_200);
  crowd.signal(client, "SIGCONT");
}

/** False when the run is over. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return await sleep(ms, true, { signal }).catch((error: Error) => {
    if (error.name === "AbortError") return false;
    throw error;
  });
}
