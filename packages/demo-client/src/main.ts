// `npm run demo`: reads the arguments, starts the servers, runs the scenarios, stops everything.
// The exit code is 0 only if every scenario was proven, 2 for arguments that cannot be right.
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { type DemoOptions, readCommandLine, UsageError, usage } from "./command-line.js";
import { runScenario } from "./engine/act-run.js";
import { openEnvironment } from "./engine/environment.js";
import type { Output } from "./output/events.js";
import { LaneView } from "./output/lane-view.js";
import { Picture } from "./output/picture.js";
import { PlainLines } from "./output/plain-lines.js";
import { paint } from "./output/text.js";
import { exitCodeOf, runProgram } from "./program.js";
import { scenarios } from "./scenarios/catalogue.js";

const names = scenarios.map(({ name }) => name);

function readOptions(): DemoOptions | undefined {
  try {
    return readCommandLine(process.argv.slice(2), names);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
    return undefined;
  }
}

function screen({ json }: DemoOptions): Output {
  const print = (line: string): void => console.log(line);
  if (json) return { show: (event) => print(JSON.stringify(event)) };
  const { isTTY, columns } = process.stdout;
  return isTTY ? new LaneView({ columns: columns || 80, print }) : new PlainLines({ print });
}

function toBoth(first: Output, second: Output): Output {
  return {
    show(event) {
      first.show(event);
      second.show(event);
    },
  };
}

async function demo(options: DemoOptions, signal: AbortSignal): Promise<void> {
  const { htmlFile, json, ttlMs, redisUrls, gateway } = options;
  // Before anything is started: a file that cannot be written is known at once.
  if (htmlFile !== undefined) await writePicture(htmlFile, "");
  await using environment = await openEnvironment({ redisUrls, gateway });
  if (signal.aborted) return;
  // Without its workers the scenario fails at its next request, and so ends.
  signal.addEventListener("abort", () => void environment.workers.end(), { once: true });
  const { description, startedInMs } = environment;
  if (!json) console.log(paint.dim([`servers ready in ${startedInMs} ms`, ...description].join("\n  ")));
  const picture = new Picture();
  const output = toBoth(screen(options), picture);
  const run = `demo-${randomBytes(4).toString("hex")}`;
  for (const scenario of scenarios.filter(({ name }) => options.scenarios.includes(name))) {
    if (signal.aborted) return;
    const outcome = await runScenario(scenario, { environment, output, ttlMs, pauseMs: pauseOf(options), run, signal });
    if (signal.aborted) return;
    if (outcome === "differs") process.exitCode = 1;
  }
  if (htmlFile === undefined) return;
  await writePicture(htmlFile, picture.html());
  if (!json) console.log(`\nDrawn: ${htmlFile}`);
}

async function writePicture(file: string, html: string): Promise<void> {
  try {
    await writeFile(file, html);
  } catch (error) {
    const reason = (error as Error).message;
    throw new Error(`The picture cannot be written to ${file}: ${reason}.`, { cause: error });
  }
}

/** Never so long that a lease would run out while the reader reads. */
function pauseOf({ speed = process.stdout.isTTY ? 1 : 0, ttlMs }: DemoOptions): number {
  return speed === 0 ? 0 : Math.min(ttlMs / 10, 200 / speed);
}

const options = readOptions();
if (options?.mode === "help") console.log(usage(names));
else if (options?.mode === "list") for (const { name, about } of scenarios) console.log(`${name.padEnd(20)}${about}`);
else if (options !== undefined) {
  const endedBy = await runProgram((signal) => demo(options, signal));
  if (endedBy !== "finished" && endedBy !== "failed") {
    const why = endedBy === "SIGPIPE" ? "The output is no longer read: stopped" : "Stopped";
    console.error(`${why} in the middle of the scenario. Everything that was started is stopped.`);
    process.exitCode = exitCodeOf(endedBy);
  }
}
