// Mutants of the example that moves a resource from one cell to another (G1, G3, T1).
const file = "examples/cells/move.js";

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const cells = [
  {
    name: "old-cell-stays-open",
    promise: "G1",
    file,
    find: "export const CLOSED = 999_999_999_999_999;",
    replace: "export const CLOSED = 1;",
    breaks: "After the move a lease of the old cell still writes there.",
    tests: ["real/cells.test.ts"],
  },
  {
    name: "new-cell-begins-again",
    promise: "T1",
    file,
    find: "await to.locker.highestToken(resource, lease.token);",
    replace: "",
    breaks: "The lock of the new cell gives tokens below those of the old one.",
    tests: ["real/cells.test.ts"],
  },
  {
    name: "moved-under-a-newer-holder",
    promise: "G1",
    file,
    find: "closed.ok && closed.previousToken > lease.token",
    replace: "closed.ok && closed.previousToken > CLOSED",
    breaks: "The fence of the new cell is below the token of a holder that came while the mover was paused.",
    tests: ["real/cells.test.ts"],
  },
];
