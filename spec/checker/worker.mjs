// One thread of the check: is handed models one by one, hands back what it found.
import { parentPort } from "node:worker_threads";
import { verdictOf } from "./verdict.mjs";

parentPort?.on("message", (/** @type {import("./models.mjs").Model} */ model) => parentPort?.postMessage(verdictOf(model)));
