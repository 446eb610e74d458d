// `npm run demo`: reads the arguments, starts the servers, runs the scenarios, stops everything. Ends
// on the first Ctrl-C or SIGTERM after cleaning up. The exit code is 0 only if every scenario was
// proven, 2 for arguments that cannot be right.
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { UsageError } from "@palisade/testkit";
import { type DemoOptions, readCommandLine, usage } from "./command-line.js";
import { runScenario } from "./engine/act.js";
import { openEnvironment } from "./engine/environment.js";
import type { Show } from "./output/events.js";
import { errorPaint, paint, plainLines } from "./output/lines.js";
import { Picture } from "./output/picture.js";
import { scenarios } from "./scenarios/catalogue.js";

const names = scenarios.map(({ name }) => name);
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGPIPE: 141 } as const;

async function demo(options: DemoOptions, signal: AbortSignal): Promise<void> {
  const { htmlFile, json, ttlMs } = options;
  // Before anything is started: a file that cannot be written is known at once.
  if (htmlFile !== undefined) await writePicture(htmlFile, "");
  await using environment = await openEnvironment();
  if (signal.aborted) return;
  // Without its workers the scenario fails at its next request, and so ends.
  signal.addEventListener("abort", () => void environment.workers[Symbol.asyncDispose](), { once: true });
  const { description, startedInMs } = environment;
  if (!json) console.log(paint.dim([`servers ready in ${startedInMs} ms`, ...description].join("\n  ")));
  const picture = new Picture();
  const print = (line: string): void => console.log(line);
  // A terminal that does not know its size says 0.
  const showLine: Show = json ? (event) => print(JSON.stringify(event)) : plainLines(print, process.stdout.columns || undefined);
  const show: Show = (event) => {
    picture.show(event);
    showLine(event);
  };
  const run = `demo-${randomBytes(4).toString("hex")}`;
  for (const scenario of scenarios.filter(({ name }) => options.scenarios.includes(name))) {
    if (signal.aborted) return;
    const outcome = await runScenario(scenario, { environment, show, ttlMs, pauseMs: pauseOf(options), run, signal });
    if (signal.aborted) return;
    if (outcome === "differs") process.exitCode = 1;
  }
  if (htmlFile === undefined) return;
  await writePicture(htmlFile, picture.html());
  if (!json) console.log(`\nDrawn: ${htmlFile}`);
}

async function writePicture(file: string, html: string): Promise<void> {
  await writeFile(file, html).catch((error: Error) => {
    throw new Error(`The picture cannot be written to ${file}: ${error.message}.`, { cause: error });
  });
}

/** Never so long that a lease would run out while the reader reads. */
function pauseOf({ speed = process.stdout.isTTY ? 1 : 0, ttlMs }: DemoOptions): number {
  return speed === 0 ? 0 : Math.min(ttlMs / 10, 200 / speed);
}

async function play(options: DemoOptions): Promise<void> {
  const abort = new AbortController();
  // A second signal is left to the testkit, which then ends all children at once. Not SIGPIPE: a
  // process that listens to it gets one for every socket of a dead server.
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, () => abort.abort(name));
  // The reader has gone (`| head -3`), or the disk is full: Node reports an error of the stream.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => abort.abort("SIGPIPE"));
  try {
    await demo(options, abort.signal);
  } catch (error) {
    // What fails because the program was told to end is not a failure.
    if (!abort.signal.aborted) {
      console.error(errorPaint.red(error instanceof Error ? error.message : String(error)));
      process.exitCode = 1;
    }
  }
  if (!abort.signal.aborted) return;
  const endedBy = abort.signal.reason as keyof typeof exitCodes;
  const why = endedBy === "SIGPIPE" ? "The output is no longer read: stopped" : "Stopped";
  console.error(`${why} in the middle of the scenario. Everything that was started is stopped.`);
  process.exitCode = exitCodes[endedBy];
}

try {
  const options = readCommandLine(process.argv.slice(2), names);
  if (options.mode === "help") console.log(usage(names));
  else if (options.mode === "list") for (const { name, about } of scenarios) console.log(`${name.padEnd(20)}${about}`);
  else await play(options);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
