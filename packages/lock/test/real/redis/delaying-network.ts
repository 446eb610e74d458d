// A network that keeps what one connection has sent, even after its sender has gone, while newer
// connections pass. Not a test.
import { createServer, type Socket, connect as tcp } from "node:net";

export interface DelayingNetwork extends AsyncDisposable {
  readonly url: string;
  /** From now on, what the connections that are open now send is kept. */
  keepPresent(): void;
  /** What was kept arrives, and then the end of its sender. */
  deliver(): Promise<void>;
}

export async function delayingNetwork(directUrl: string): Promise<DelayingNetwork> {
  const { hostname, port } = new URL(directUrl);
  const ways = new Set<{ readonly client: Socket; readonly server: Socket; kept: Buffer[] | undefined }>();
  const listener = createServer((client) => {
    const way = { client, server: tcp(Number(port), hostname), kept: undefined as Buffer[] | undefined };
    ways.add(way);
    client.on("data", (bytes: Buffer) => (way.kept === undefined ? way.server.write(bytes) : way.kept.push(bytes)));
    client.on("close", () => {
      if (way.kept === undefined) way.server.destroy();
    });
    way.server.on("data", (bytes) => client.write(bytes));
    way.server.on("close", () => client.destroy());
    // What breaks here is meant to break.
    for (const socket of [client, way.server]) socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  return {
    url: `redis://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    keepPresent() {
      for (const way of ways) way.kept ??= [];
    },
    async deliver() {
      const held = [...ways].filter(({ kept }) => kept !== undefined);
      await Promise.all(
        held.map(
          ({ server, kept }) =>
            new Promise<void>((resolve) => {
              server.once("close", () => resolve());
              if (server.destroyed) resolve();
              else server.end(Buffer.concat(kept ?? []));
            }),
        ),
      );
    },
    async [Symbol.asyncDispose]() {
      for (const { client, server } of ways) {
        client.destroy();
        server.destroy();
      }
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
