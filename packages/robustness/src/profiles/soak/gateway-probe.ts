// Loaded into the gateway's process before its program (node --import): lets the shipped program tell how it is, without a line for it in the program. It must not
// keep the process alive.
import { readSelf, startProbe } from "./probe.js";

startProbe();
setInterval(() => process.send?.({ kind: "reading", self: readSelf() }), Number(process.env.SOAK_READING_EVERY_MS ?? 5_000)).unref();
