// How many commands clients send to the nodes, counted by MONITOR, which tells commands of clients
// from those that a script runs. It slows the node down, so it counts outside of timed rounds.
import { connect, type Socket } from "node:net";
import type { RedisFleet } from "@palisade/testkit";

interface Monitor {
  count: number;
  readonly socket: Socket;
}

/** One line per command: "+1700000000.123456 [0 127.0.0.1:5000] "EVALSHA" …", or [0 lua]. */
const SENT = /^\+[0-9.]+ \[[0-9]+ (?!lua\])/gm;

async function monitor(url: string): Promise<Monitor> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const counted: Monitor = { count: 0, socket };
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("data", () => resolve());
    socket.write("MONITOR\r\n");
  });
  let rest = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    const end = text.lastIndexOf("\n") + 1;
    counted.count += `${rest}${text.slice(0, end)}`.match(SENT)?.length ?? 0;
    rest = end === 0 ? rest + text : text.slice(end);
  });
  return counted;
}

/** On all nodes together. */
export async function countCommands<T>(fleet: RedisFleet, work: () => Promise<T>): Promise<{ commands: number; result: T }> {
  const monitors = await Promise.all(fleet.nodes.map(({ directUrl }) => monitor(directUrl)));
  const result = await work();
  const commands = monitors.reduce((total, { count }) => total + count, 0);
  for (const { socket } of monitors) socket.destroy();
  return { commands, result };
}
