// A server that is measured: a process of its own, so that it shares no thread with the load.
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "@palisade/testkit";

export interface ServerProcess {
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly pid: number;
  stop(): Promise<void>;
}

interface Program {
  readonly name: string;
  readonly file: URL;
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  readonly adminPort?: number;
}

const READY_TIMEOUT_MS = 20_000;

export async function startServer({ name, file, env, port, adminPort }: Program): Promise<ServerProcess> {
  const child: Child = startChild({
    name,
    command: process.execPath,
    args: [fileURLToPath(file)],
    env: { PORT: String(port), ...(adminPort === undefined ? {} : { ADMIN_PORT: String(adminPort) }), ...env },
  });
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(url, child);
  return {
    url,
    adminUrl: adminPort === undefined ? undefined : `http://127.0.0.1:${adminPort}`,
    pid: child.pid,
    stop: async () => {
      await child.stop();
    },
  };
}

async function untilAnswers(url: string, child: Child): Promise<void> {
  const giveUpAt = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    try {
      await (await fetch(`${url}/openapi.json`)).arrayBuffer();
      return;
    } catch (cause) {
      if (!child.alive || performance.now() > giveUpAt)
        throw new Error(`${url} does not answer: ${child.lastLines().join("\n")}`, { cause });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
