// A reset closes a socket in every state. One left open would keep its process from exiting.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { reset } from "../../src/proxy/connection.js";

const states: Readonly<Record<string, (socket: Socket) => Promise<unknown> | undefined>> = {
  connecting: () => undefined,
  open: (socket) => once(socket, "connect"),
  ending: async (socket) => {
    await once(socket, "connect");
    socket.end();
  },
  ended: async (socket) => {
    await once(socket, "connect");
    socket.end();
    await once(socket, "finish");
  },
};

for (const [state, reach] of Object.entries(states)) {
  test(`a reset closes a socket that is ${state}`, async () => {
    // It may see the reset.
    const server = createServer({ allowHalfOpen: true }, (peer) => peer.on("error", () => {}));
    await once(server.listen(0, "127.0.0.1"), "listening");
    const socket = connect({ port: (server.address() as { port: number }).port, host: "127.0.0.1", allowHalfOpen: true });
    await reach(socket);
    const closed = once(socket, "close"); // Rejects on an error.
    reset(socket);
    await closed;
    expect(socket.destroyed).toBe(true);
    server.close();
  });
}
