// A real etcd of several members on this machine, which Patroni keeps its cluster in.
import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Child, startChild } from "../process/child.js";
import { returnPort, takePort } from "../process/port-block.js";
import type { FoundProgram } from "../resolve/distribution-program.js";

export interface EtcdMember {
  readonly host: string;
  readonly port: number;
}

const HOST = "127.0.0.1";
const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

export class Etcd implements AsyncDisposable {
  readonly members: readonly EtcdMember[];
  readonly #children: readonly Child[];
  readonly #ports: readonly number[];

  private constructor(members: readonly EtcdMember[], children: readonly Child[], ports: readonly number[]) {
    this.members = members;
    this.#children = children;
    this.#ports = ports;
  }

  /** The folder is removed by the caller. */
  static async start(program: FoundProgram, { size, folder }: { readonly size: number; readonly folder: string }): Promise<Etcd> {
    const ports = await Promise.all(Array.from({ length: 2 * size }, takePort));
    const places = Array.from({ length: size }, (_, index) => ({
      name: `etcd-${index + 1}`,
      client: ports[2 * index] as number,
      peer: ports[2 * index + 1] as number,
      data: join(folder, `etcd-${index + 1}`),
    }));
    const cluster = places.map(({ name, peer }) => `${name}=http://${HOST}:${peer}`).join(",");
    const children: Child[] = [];
    for (const { name, client, peer, data } of places) {
      await mkdir(data);
      await chmod(data, 0o700);
      if (program.account !== undefined) await chown(data, program.account.uid, program.account.gid);
      children.push(startMember(program, { name, client, peer, data, cluster }));
    }
    const members = places.map(({ client }) => ({ host: HOST, port: client }));
    const started = new Etcd(members, children, ports);
    await started.#untilHealthy().catch(async (error: unknown) => {
      await started.stop();
      throw error;
    });
    return started;
  }

  async #untilHealthy(): Promise<void> {
    const giveUpAt = performance.now() + READY_TIMEOUT_MS;
    for (const [index, { port }] of this.members.entries())
      while (!(await isHealthy(port))) {
        const child = this.#children[index];
        if (child?.alive !== true || performance.now() > giveUpAt) throw new Error(`etcd did not start: ${child?.howItEnded()}`);
        await sleep(POLL_MS);
      }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()));
    for (const port of this.#ports) returnPort(port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

interface MemberSettings {
  readonly name: string;
  readonly client: number;
  readonly peer: number;
  readonly data: string;
  /** All members, as etcd wants them named. */
  readonly cluster: string;
}

function startMember({ binary, libraryPath, account }: FoundProgram, { name, client, peer, data, cluster }: MemberSettings): Child {
  const [clientUrl, peerUrl] = [`http://${HOST}:${client}`, `http://${HOST}:${peer}`];
  const settings = {
    name,
    "data-dir": data,
    "listen-client-urls": clientUrl,
    "advertise-client-urls": clientUrl,
    "listen-peer-urls": peerUrl,
    "initial-advertise-peer-urls": peerUrl,
    "initial-cluster": cluster,
    "initial-cluster-state": "new",
    // On a machine that does much else, the defaults would elect a leader again and again.
    "heartbeat-interval": "300",
    "election-timeout": "3000",
    "log-level": "error",
  };
  return startChild({
    command: binary,
    args: Object.entries(settings).map(([key, value]) => `--${key}=${value}`),
    env: libraryPath === "" ? {} : { LD_LIBRARY_PATH: libraryPath },
    name,
    cwd: "/",
    ...account,
  });
}

async function isHealthy(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://${HOST}:${port}/health`, { signal: AbortSignal.timeout(1_000) });
    return ((await response.json()) as { readonly health?: string }).health === "true";
  } catch {
    return false;
  }
}
