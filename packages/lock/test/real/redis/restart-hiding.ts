// A middleman that keeps its clients' connections over a restart of the server behind it, as if
// nothing had happened. Not a test.
import { createServer, type Socket, connect as tcp } from "node:net";

export interface Middleman extends AsyncDisposable {
  readonly url: string;
  /** The server has restarted: every client's connection leads to it again. */
  reconnect(): Promise<void>;
}

export async function restartHiding(directUrl: string): Promise<Middleman> {
  const { hostname, port } = new URL(directUrl);
  const ways = new Map<Socket, Socket>();
  const lead = (client: Socket): Promise<void> =>
    new Promise((resolve) => {
      const server = tcp(Number(port), hostname, resolve);
      server.on("data", (bytes) => client.write(bytes));
      // The end of the server is what is hidden here.
      server.on("error", () => server.destroy());
      ways.set(client, server);
    });
  const listener = createServer((client) => {
    void lead(client);
    client.on("data", (bytes) => ways.get(client)?.write(bytes));
    client.on("error", () => client.destroy());
    client.on("close", () => {
      ways.get(client)?.destroy();
      ways.delete(client);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  return {
    url: `redis://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    reconnect: async () => {
      await Promise.all([...ways.keys()].map(lead));
    },
    async [Symbol.asyncDispose]() {
      for (const [client, server] of ways) {
        client.destroy();
        server.destroy();
      }
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
