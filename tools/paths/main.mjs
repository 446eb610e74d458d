// Traces the paths of the product on real servers: prints the files of each operation as JSON.
import { pathToFileURL } from "node:url";
import { Coverage } from "./coverage.mjs";
import { tracePaths } from "./operations.mjs";

/** Another built workspace may be given, to compare. */
const root = process.argv[2] === undefined ? new URL("../..", import.meta.url) : pathToFileURL(`${process.argv[2]}/`);
const coverage = new Coverage(root);
const load = (/** @type {string} */ name) => import(new URL(`packages/${name}/dist/index.js`, root).href);
const [lock, gateway, testkit] = await Promise.all(["lock", "gateway", "testkit"].map(load));
console.log(JSON.stringify(await tracePaths({ lock, gateway, testkit, coverage }), null, 2));
coverage.stop();
