// A server begins to listen, says where, and ends.
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

export function listenOn(server: Server, place: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(place, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Resolves as well for a server that never listened. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Of a server that listens. */
export function urlOf(server: Server): string {
  const { family, address, port } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

export function notListening(): never {
  throw new Error("the gateway is not listening: await listen() first");
}
