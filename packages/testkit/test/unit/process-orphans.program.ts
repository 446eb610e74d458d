// A parent that starts two children, one of them as another user where it may, and then stays idle
// until it is killed. Prints the children's pids.
import { startChild } from "@palisade/testkit";

// Its library for lock files listens for signals, and leaves dying of them to other listeners.
if (process.argv[2] === "testcontainers") await import("testcontainers");
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const children = [startChild({ command: "sleep", args: ["600"] }), startChild({ command: "sleep", args: ["600"], ...nobody })];
process.stdout.write(`${JSON.stringify(children.map((child) => child.pid))}\n`);
if (process.argv[2] === "exit") process.exit(0);
if (process.argv[2] !== "end") setInterval(() => {}, 60_000);
