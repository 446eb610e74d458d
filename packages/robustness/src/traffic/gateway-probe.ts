// Loaded into the gateway's process before its program (node --import), so that the shipped program
// reports its memory and handles.
import { readSelf, startProbe } from "./probe.js";

startProbe();
setInterval(() => process.send?.({ kind: "reading", self: readSelf() }), Number(process.env.SOAK_READING_EVERY_MS ?? 5_000)).unref();
