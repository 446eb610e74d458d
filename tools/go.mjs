// Entry of every npm script: `node tools/go.mjs <task> [arguments]`. Decides only whether this Node
// is new enough; tools/go/main.mjs does the rest. Must parse on Node 12.17, the first that runs
// .mjs: no import statements and no newer syntax here, so that an old Node prints a sentence and
// not a syntax error.
const parts = process.versions.node.split(".").map(Number);
const major = parts[0] || 0;
const minor = parts[1] || 0;
const supported = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22; // what vite runs on, and with it the tests

if (!supported) {
  console.error(`palisade: Node 20.19, 22.12 or newer is needed; this is Node ${process.versions.node} (${process.execPath}).`);
  process.exit(1);
}

import("./go/main.mjs").then(
  ({ main }) => main(process.argv[2], process.argv.slice(3)),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
