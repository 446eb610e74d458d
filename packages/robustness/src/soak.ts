// `npm run soak`: half an hour of everything, and whether anything grows that should not. Exit code
// 1 if a curve is not flat (with --leak: if all of client 1's are), 2 if the arguments make no
// sense, 130 if the run was interrupted.
import { runCommand } from "./harness/command.js";
import { soakCommand } from "./profiles/soak-command.js";

process.exitCode = await runCommand(soakCommand, process.argv.slice(2));
