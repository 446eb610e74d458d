// A real Prometheus that scrapes what a test names, with the rules of a file, and its tool.
import { dirname, join } from "node:path";
import { run } from "../programs/cache.js";
import { libraryVariable, programOf } from "../programs/programs.js";
import { isOk, ServerProgram } from "./server-program.js";

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

export class Prometheus extends ServerProgram {
  static async start({ job, targets, rules }: PrometheusOptions): Promise<Prometheus> {
    const configuration = `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
scrape_configs: [{ job_name: ${job}, static_configs: [{ targets: ${JSON.stringify(targets)} }] }]
`;
    const launched = await ServerProgram.launch(
      await programOf("prometheus"),
      () => ({ "prometheus.yml": configuration, "rules.yml": rules }),
      ({ folder, port }) => ({
        name: "prometheus",
        args: [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`],
        isReady: () => isOk(`http://127.0.0.1:${port}/-/ready`),
      }),
    );
    return new Prometheus(...launched);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
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
}
