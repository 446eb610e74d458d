// A server that is no Redis node of ours: it answers every RESP command it is sent with fixed
// bytes. Not a test.
import { createServer, type Socket } from "node:net";

export interface SpeakingServer extends AsyncDisposable {
  readonly url: string;
}

/** `answer` gets the number of commands that just arrived. */
export async function speakingServer(answer: (commands: number) => string): Promise<SpeakingServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("data", (bytes) => socket.write(answer(bytes.toString().match(/^\*\d+\r$/gm)?.length ?? 0)));
    socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `redis://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
