// Mutants of what the program palisade does to a holder.

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const commands = [
  {
    name: "forced-release-without-seal",
    promise: "G1",
    file: "packages/cli/src/commands/lock.ts",
    find: "if (!context.hasGateway) {",
    replace: "if (!context.hasGateway || fence > 0) {",
    breaks: "The holder loses the lock, and its next write is still accepted.",
    tests: ["real/operate.test.ts"],
  },
  {
    name: "forced-release-without-consent",
    promise: "L2",
    file: "packages/cli/src/commands/lock.ts",
    find: "if (answer !== resource)",
    replace: 'if (answer === "")',
    breaks: "Whatever is typed at the question takes the lock from its holder.",
    tests: ["real/operate.test.ts"],
  },
  {
    name: "left-question-as-a-failure",
    promise: "L2",
    file: "packages/cli/src/context.ts",
    find: 'lines.once("close", () => left.abort());',
    replace: "",
    breaks: "An operator who leaves the question by Ctrl-C is told by the exit code that too few nodes answered.",
    tests: ["real/operate.test.ts"],
  },
  {
    name: "watch-ends-with-a-lost-quorum",
    promise: "W1",
    file: "packages/cli/src/commands/watch.ts",
    find: "if (before === undefined || !(error",
    replace: "if (before !== undefined || !(error",
    breaks: "An operator's watch ends at the moment of the failure that it is watched for.",
    tests: ["real/operate.test.ts"],
  },
];
