#!/usr/bin/env node
// The program palisade. Exit codes: 0 done, 1 the answer is no, 2 wrong arguments or settings,
// 3 too few nodes or no gateway answered, 4 refused.
import { run } from "./run.js";

// A reader that has seen enough closes the pipe (palisade ls | head); that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
process.exitCode = await run({
  args: process.argv.slice(2),
  env: process.env,
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr,
});
