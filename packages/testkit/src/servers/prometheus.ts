// A real Prometheus that scrapes what a test names, with the rules of a file, and its tool.
import { chmod, chown, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Child, startChild } from "../process/child.js";
import { keepFolder } from "../process/living-children.js";
import { returnPort, takePort } from "../process/port-block.js";
import { scratchFolder } from "../process/scratch-folder.js";
import { resolvePrometheus } from "../resolve/distribution-program.js";
import { type Account, run } from "../resolve/postgres-cache.js";

export interface PrometheusOptions {
  /** Addresses as host:port; scraped every second as the job of this name. */
  readonly job: string;
  readonly targets: readonly string[];
  /** The text of a rule file. */
  readonly rules: string;
}

export interface FiringAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

const READY_TIMEOUT_MS = 30_000;

export class Prometheus implements AsyncDisposable {
  readonly url: string;
  readonly #child: Child;
  readonly #port: number;
  readonly #folder: string;

  private constructor(running: { readonly child: Child; readonly port: number; readonly folder: string }) {
    this.url = `http://127.0.0.1:${running.port}`;
    this.#child = running.child;
    this.#port = running.port;
    this.#folder = running.folder;
  }

  static async start({ job, targets, rules }: PrometheusOptions): Promise<Prometheus> {
    const program = await resolvePrometheus();
    const folder = scratchFolder("prometheus", "/tmp");
    const port = await takePort();
    const configuration = `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
scrape_configs: [{ job_name: ${job}, static_configs: [{ targets: ${JSON.stringify(targets)} }] }]
`;
    await writeFile(join(folder, "rules.yml"), rules);
    await writeFile(join(folder, "prometheus.yml"), configuration);
    await handOver(folder, program.account);
    const child = startChild({
      command: program.binary,
      args: [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`],
      env: program.libraryPath === "" ? {} : { LD_LIBRARY_PATH: program.libraryPath },
      name: "prometheus",
      cwd: "/",
      ...program.account,
    });
    const started = new Prometheus({ child, port, folder });
    await started.#untilReady();
    return started;
  }

  /** What `promtool` prints of these arguments; throws what it prints when it finds fault. */
  static async tool(...args: readonly string[]): Promise<string> {
    const { binary, libraryPath } = await resolvePrometheus();
    const env = libraryPath === "" ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath };
    const { stdout, stderr } = await run(join(dirname(binary), "promtool"), [...args], { env });
    return `${stdout}${stderr}`;
  }

  async alerts(): Promise<readonly FiringAlert[]> {
    const answer = (await (await fetch(`${this.url}/api/v1/alerts`)).json()) as { data: { alerts: readonly FiringAlert[] } };
    return answer.data.alerts;
  }

  async #untilReady(): Promise<void> {
    const giveUpAt = performance.now() + READY_TIMEOUT_MS;
    for (;;) {
      const ready = await fetch(`${this.url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (ready) return;
      if (!this.#child.alive || performance.now() > giveUpAt) {
        const said = this.#child.lastLines().join("\n");
        await this.stop();
        throw new Error(`Prometheus did not start: ${said}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async stop(): Promise<void> {
    await this.#child.kill();
    returnPort(this.#port);
    await rm(this.#folder, { recursive: true });
    keepFolder(this.#folder); // There is nothing left to remove at exit.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

async function handOver(folder: string, account: Account | undefined): Promise<void> {
  await chmod(folder, 0o711);
  if (account === undefined) return;
  for (const path of [folder, join(folder, "rules.yml"), join(folder, "prometheus.yml")]) await chown(path, account.uid, account.gid);
}
