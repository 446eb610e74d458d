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
];
