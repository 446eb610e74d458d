// What may stand where a client expects a node: another server, a proxy whose server changes, and
// networks that keep or hide what happens. Not a test.
import { createServer, type Socket, connect as tcp } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { FaultProxy } from "@palisade/testkit";

interface Middleman extends AsyncDisposable {
  readonly url: string;
}

/** A listener whose connections `meet` handles. At its end all `sockets` are destroyed. */
async function listening(sockets: Set<Socket>, meet: (client: Socket) => void, tls?: typeof certified): Promise<Middleman> {
  const met = (client: Socket | TLSSocket): void => {
    // What breaks here is meant to break.
    sockets.add(client.on("error", () => client.destroy()));
    meet(client);
  };
  const listener = tls === undefined ? createServer(met) : createTlsServer(tls, met);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  return {
    url: `redis://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** Answers RESP commands with fixed bytes; `answer` gets how many have just arrived. */
export function speakingServer(answer: (commands: number) => string): Promise<Middleman> {
  return listening(new Set(), (client) =>
    client.on("data", (bytes) => client.write(answer(bytes.toString().match(/^\*\d+\r$/gm)?.length ?? 0))),
  );
}

interface DelayingNetwork extends Middleman {
  /** From now on, what the connections that are open now send is kept. */
  keepPresent(): void;
  /** What was kept arrives, and then the end of its sender. */
  deliver(): Promise<void>;
}

/** Keeps what a connection has sent, even after its sender has gone, while newer ones pass. */
export async function delayingNetwork(directUrl: string): Promise<DelayingNetwork> {
  const { hostname, port } = new URL(directUrl);
  const ways = new Set<{ readonly server: Socket; kept: Buffer[] | undefined }>();
  const sockets = new Set<Socket>();
  const middleman = await listening(sockets, (client) => {
    const server = tcp(Number(port), hostname);
    const way = { server, kept: undefined as Buffer[] | undefined };
    ways.add(way);
    sockets.add(server.on("error", () => server.destroy()));
    client.on("data", (bytes: Buffer) => (way.kept === undefined ? server.write(bytes) : way.kept.push(bytes)));
    client.on("close", () => {
      if (way.kept === undefined) server.destroy();
    });
    server.on("data", (bytes) => client.write(bytes)).on("close", () => client.destroy());
  });
  return {
    ...middleman,
    keepPresent() {
      for (const way of ways) way.kept ??= [];
    },
    async deliver() {
      const held = [...ways].filter(({ kept }) => kept !== undefined);
      const ended = held.map(async ({ server, kept }) => {
        const closed = new Promise<void>((resolve) => server.once("close", () => resolve()));
        if (server.destroyed) return;
        server.end(Buffer.concat(kept ?? []));
        await closed;
      });
      await Promise.all(ended);
    },
  };
}

/**
 * Keeps its clients' connections over a restart of the server behind it, as if nothing had
 * happened. `reconnect`: the server has restarted, and every client's connection leads to it again.
 */
export async function restartHiding(directUrl: string): Promise<Middleman & { reconnect(): Promise<void> }> {
  const { hostname, port } = new URL(directUrl);
  const ways = new Map<Socket, Socket>();
  const sockets = new Set<Socket>();
  const lead = (client: Socket): Promise<void> =>
    new Promise((resolve) => {
      const server = tcp(Number(port), hostname, resolve);
      // The end of the server is what is hidden here.
      sockets.add(server.on("error", () => server.destroy()));
      server.on("data", (bytes) => client.write(bytes));
      ways.set(client, server);
    });
  const middleman = await listening(sockets, (client) => {
    void lead(client);
    client.on("data", (bytes) => ways.get(client)?.write(bytes));
    client.on("close", () => {
      ways.get(client)?.destroy();
      ways.delete(client);
    });
  });
  return { ...middleman, reconnect: async () => void (await Promise.all([...ways.keys()].map(lead))) };
}

interface Upstream {
  readonly host: string;
  readonly port: number;
}

/**
 * An address behind which one server may take the place of another, as after a failover: from
 * `standIn` on that server answers, and connections to the other are cut.
 */
export async function standingIn(upstream: Upstream): Promise<Middleman & { standIn(upstream: Upstream): Promise<void> }> {
  const proxy = await FaultProxy.start({ upstream });
  return {
    url: `redis://${proxy.host}:${proxy.port}`,
    async standIn(next) {
      await proxy.serverUp(next);
      proxy.cut();
    },
    [Symbol.asyncDispose]: () => proxy.stop(),
  };
}

/** Of nobody: for servers of these tests, which are 127.0.0.1. */
export const certified = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgrMrHT6xFGZujwdqC
Pj/K2i6Hh6Zw0+YfMKdUzQ3C2IehRANCAARMp2Nqvt1oyqaFzdqzGXfsfBNuUZxy
AZWPBEmcPI3F7f2PUcS7GHoR9jPTtFnahLZZ2oypfgwOVOFZflu4eKl7
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBSTCB8aADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCTEyNy4wLjAu
MTAgFw0yMDAxMDEwMDAwMDBaGA85OTk5MTIzMTIzNTk1OVowFDESMBAGA1UEAwwJ
MTI3LjAuMC4xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAETKdjar7daMqmhc3a
sxl37HwTblGccgGVjwRJnDyNxe39j1HEuxh6EfYz07RZ2oS2WdqMqX4MDlThWX5b
uHipe6MyMDAwDwYDVR0RBAgwBocEfwAAATAdBgNVHQ4EFgQUPCwHVqH8KBO5B0Ch
B2Py/7tkEEQwCgYIKoZIzj0EAwIDRwAwRAIgbpLZjaGx7rPPKzstGlRKTL8x33gI
yn39XSeBSyR5v4wCID8+oRJ5Xvf8cu6PVFiQJFlxW2Knq3aGVTUOYxIMNczd
-----END CERTIFICATE-----`,
};

/** Speaks TLS, and passes on what it is told to a server that does not. */
export async function encrypting(directUrl: string): Promise<Middleman> {
  const { hostname, port } = new URL(directUrl);
  const sockets = new Set<Socket>();
  const meet = (client: Socket): void => {
    const server = tcp(Number(port), hostname);
    sockets.add(server.on("error", () => server.destroy()));
    client.pipe(server).pipe(client);
    client.on("close", () => server.destroy());
    server.on("close", () => client.destroy());
  };
  return await listening(sockets, meet, certified);
}
