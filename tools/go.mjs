// Entry of every npm script: `node tools/go.mjs <task> [arguments]`. Decides only whether this Node is new enough; tools/go/main.mjs does the rest.
// Must parse on Node 12: no import statements and no newer syntax here, so that an old Node prints a sentence and not a syntax error.
const version = process.versions.node.split(".").map(Number);
const major = version[0] || 0;
const supported = major > 20 || (major === 20 && (version[1] || 0) >= 19);

if (!supported) {
  console.error(`palisade: Node 20.19 or newer is needed; this is Node ${process.versions.node} (${process.execPath}).`);
  process.exit(1);
}

import("./go/main.mjs").then(
  ({ main }) => main(process.argv[2], process.argv.slice(3)),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
