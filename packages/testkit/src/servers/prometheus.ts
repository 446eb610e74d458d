// A real Prometheus that scrapes what a test names, with the rules of a file, and its tool.
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { scratchFolder } from "../process/orphans.js";
import { returnPort, takePort } from "../process/port-block.js";
import type { Child } from "../process/program.js";
import { run } from "../programs/cache.js";
import { libraryVariable, programOf } from "../programs/programs.js";
import { handOver, isOk, startProgram } from "./server-program.js";

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
    const program = await programOf("prometheus");
    const folder = scratchFolder("prometheus", "/tmp");
    const port = await takePort();
    const configuration = `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
scrape_configs: [{ job_name: ${job}, static_configs: [{ targets: ${JSON.stringify(targets)} }] }]
`;
    const [file, ruleFile] = [join(folder, "prometheus.yml"), join(folder, "rules.yml")];
    await writeFile(ruleFile, rules);
    await writeFile(file, configuration);
    await handOver(program, folder, [folder, ruleFile, file]);
    const child = await startProgram(program, {
      name: "prometheus",
      args: [`--config.file=${file}`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`],
      isReady: () => isOk(`http://127.0.0.1:${port}/-/ready`),
    });
    return new Prometheus({ child, port, folder });
  }

  /** What `promtool` prints of these arguments; throws what it prints when it finds fault. */
  static async tool(...args: readonly string[]): Promise<string> {
    const program = await programOf("prometheus");
    const env = { ...process.env, ...libraryVariable(program) };
    const { stdout, stderr } = await run(join(dirname(program.binary), "promtool"), [...args], { env });
    return `${stdout}${stderr}`;
  }

  async alerts(): Promise<readonly FiringAlert[]> {
    const answer = (await (await fetch(`${this.url}/api/v1/alerts`)).json()) as { data: { alerts: readonly FiringAlert[] } };
    return answer.data.alerts;
  }

  async stop(): Promise<void> {
    await this.#child.kill();
    returnPort(this.#port);
    await rm(this.#folder, { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
