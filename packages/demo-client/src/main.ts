// `npm run demo`: reads what is wanted, brings the stage up, tells the stories, takes everything down again. Decides the exit code: 0 only if every story came out as it
// must, 2 for arguments that cannot be right.
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";

import { scenarios } from "./catalogue.js";
import { Misunderstood, readCommandLine, usage, type Wish } from "./command-line.js";
import { LaneView } from "./lane-view.js";
import { paint } from "./paint.js";
import { perform } from "./perform.js";
import { Picture } from "./picture.js";
import { PlainLines } from "./plain-lines.js";
import { exitCodeOf, runProgram } from "./program.js";
import { openStage, type Stage } from "./stage.js";
import type { Audience } from "./story-event.js";

const names = scenarios.map(({ name }) => name);

function read(): Wish | undefined {
  try {
    return readCommandLine(process.argv.slice(2), names);
  } catch (error) {
    if (!(error instanceof Misunderstood)) throw error;
    console.error(error.message);
    process.exitCode = 2;
    return undefined;
  }
}

/** Everybody who looks on: the terminal, and the picture if one is wanted. */
function audienceOf(wish: Wish, picture: Picture | undefined): Audience {
  const shown = screenOf(wish);
  if (picture === undefined) return shown;
  return {
    notice(event) {
      shown.notice(event);
      picture.notice(event);
    },
  };
}

function screenOf(wish: Wish): Audience {
  const print = (line: string): void => console.log(line);
  if (wish.json) return { notice: (event) => print(JSON.stringify(event)) };
  const { isTTY, columns } = process.stdout;
  return isTTY ? new LaneView({ columns: columns || 80, print }) : new PlainLines({ print });
}

function announce({ description, startedInMs }: Stage, wish: Wish): void {
  if (wish.json) return;
  console.log(paint.dim([`stage set in ${startedInMs} ms`, ...description].join("\n  ")));
}

async function play(wish: Wish, signal: AbortSignal): Promise<void> {
  if (wish.htmlFile !== undefined) await writePicture(wish.htmlFile, ""); // A place that cannot be written to is better known before.
  await using stage = await openStage({ redisUrls: wish.redisUrls, gateway: wish.gateway });
  // With its workers gone the story cannot go on: whatever it waits for fails.
  const interrupted = (): void => void stage.crew.end();
  if (signal.aborted) return;
  signal.addEventListener("abort", interrupted, { once: true });
  announce(stage, wish);
  const picture = wish.htmlFile === undefined ? undefined : new Picture();
  const audience = audienceOf(wish, picture);
  const beatMs = pace(wish);
  const run = `demo-${randomBytes(4).toString("hex")}`;
  for (const scenario of scenarios.filter(({ name }) => wish.scenarios.includes(name))) {
    if (signal.aborted) return;
    const outcome = await perform(scenario, { stage, audience, ttlMs: wish.ttlMs, beatMs, run, signal });
    if (signal.aborted) return;
    if (outcome === "differs") process.exitCode = 1;
  }
  if (picture !== undefined && wish.htmlFile !== undefined) {
    await writePicture(wish.htmlFile, picture.html());
    if (!wish.json) console.log(`\nDrawn: ${wish.htmlFile}`);
  }
}

async function writePicture(file: string, html: string): Promise<void> {
  try {
    await writeFile(file, html);
  } catch (error) {
    throw new Error(`The picture cannot be written to ${file}: ${(error as Error).message}.`, { cause: error });
  }
}

/** Never so slow that a lease would run out while the audience reads. */
function pace({ speed = process.stdout.isTTY ? 1 : 0, ttlMs }: Wish): number {
  return speed === 0 ? 0 : Math.min(ttlMs / 10, 200 / speed);
}

const wish = read();
if (wish?.mode === "help") console.log(usage(names));
else if (wish?.mode === "list") for (const { name, about } of scenarios) console.log(`${name.padEnd(20)}${about}`);
else if (wish !== undefined) {
  const ending = await runProgram((signal) => play(wish, signal));
  if (ending !== "finished" && ending !== "failed") {
    const why = ending === "SIGPIPE" ? "Nobody reads what is told, so this ended" : "Stopped";
    console.error(`${why} in the middle of the story. Everything that was started is stopped.`);
    process.exitCode = exitCodeOf(ending);
  }
}
