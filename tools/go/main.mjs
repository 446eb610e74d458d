// One task from start to exit code: prepare the clone in turn with other runs, run the task, and
// pass on signals. Its exit code is the task's.
import { watchAncestors } from "./ancestors.mjs";
import { build } from "./build.mjs";
import { Interrupted, interrupt } from "./child.mjs";
import { diskFull } from "./explain.mjs";
import { settleHome } from "./home.mjs";
import { install } from "./install.mjs";
import { Refusal } from "./refusal.mjs";
import { tasks } from "./tasks.mjs";
import { inTurn } from "./turn.mjs";

/** npm passes on the Ctrl-C that the terminal has sent here as well: both are one request. */
const SAME_REQUEST_MS = 700;
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** @param {string | undefined} name @param {readonly string[]} args */
export async function main(name, args) {
  const ending = listenForTheEnd();
  try {
    const code = await perform(name, args);
    process.exit(ending.code ?? code);
  } catch (error) {
    const refusal = error instanceof Refusal ? error : diskFull(error instanceof Error && "code" in error ? String(error.code) : "");
    if (refusal !== undefined) console.error(`palisade: ${refusal.message}`);
    else if (!(error instanceof Interrupted)) console.error(error);
    process.exit(ending.code ?? 1);
  }
}

/** @param {string | undefined} name @param {readonly string[]} args */
async function perform(name, args) {
  const task = name === undefined ? undefined : tasks[name];
  if (task === undefined) throw new Refusal(`there is no task "${name ?? ""}"; there are ${Object.keys(tasks).join(", ")}.`);
  const remark = settleHome();
  if (remark !== undefined) console.error(`palisade: ${remark}`);
  await inTurn(async () => {
    if (task.installs !== false) await install();
    if (task.builds !== undefined) await build(task.builds);
  });
  return task.run(args);
}

/** A signal, or the death of npm, ends the children; the exit code then tells the signal. */
function listenForTheEnd() {
  /** @type {{ code: number | undefined }} */
  const ending = { code: undefined };
  let lastAt = Number.NEGATIVE_INFINITY;
  for (const [signal, code] of /** @type {[keyof typeof exitCodes, number][]} */ (Object.entries(exitCodes))) {
    process.on(signal, () => {
      const again = performance.now() - lastAt < SAME_REQUEST_MS;
      lastAt = performance.now();
      if (again) return;
      ending.code ??= code;
      interrupt(signal === "SIGINT" ? "SIGINT" : "SIGTERM");
    });
  }
  watchAncestors(() => {
    ending.code ??= exitCodes.SIGHUP;
    interrupt("SIGTERM");
  });
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {}); // the reader has left
  return ending;
}
