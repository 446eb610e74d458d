// Mutants of the floor, and of the token of a resource without a counter (T1, T2).
const lua = (/** @type {string} */ name) => `packages/lock/src/redis/lua/${name}.lua`;

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const floors = [
  {
    name: "floor-does-not-rise",
    promise: "T1",
    file: lua("store-floor"),
    find: "if floor > floorBefore then",
    replace: "if floor > HIGHEST then",
    breaks: "The highest token of all resources is not kept: a counter that runs out takes its tokens with it.",
    tests: ["real/redis/requests.test.ts"],
  },
  {
    name: "floor-does-not-rise-in-short",
    promise: "T1",
    file: lua("grant"),
    find: "if floor > before then",
    replace: "if floor > HIGHEST then",
    breaks: "On the short way the highest token of all resources is not kept: a counter that runs out takes its tokens with it.",
    tests: ["real/redis/short-way.test.ts"],
  },
  {
    name: "floor-does-not-rise-for-a-new-resource",
    promise: "T1",
    file: lua("free-resource"),
    find: "    floor = token\n  else",
    replace: "  else",
    breaks: "The token of a resource without a counter is forgotten when that counter runs out, and given again.",
    tests: ["real/redis/short-way.test.ts"],
  },
];
