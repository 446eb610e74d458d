// Mutants of how long a writer waits for rows that others hold (G6).

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const waits = [
  {
    name: "slow-rows-travel-with-the-others",
    promise: "G6",
    file: "packages/gateway/src/guard/write-queue.ts",
    find: 'this.#slowRows.has(entry.request.resource) ? "slow" : "batch"',
    replace: 'this.#slowRows.has(entry.request.resource) ? "batch" : "batch"',
    breaks: "Every batch waits for a held row again, although it is known to be held.",
    tests: ["unit/guard/write-queue.test.ts"],
  },
  {
    name: "each-retry-waits-anew",
    promise: "G6",
    file: "packages/gateway/src/store/bounded-wait.ts",
    find: "Math.max(0, this.#limits.maxWaitMs - waiter.waitedMs)",
    replace: "Math.max(0, this.#limits.maxWaitMs - 0 * waiter.waitedMs)",
    breaks: "A write that is sent again may wait the whole time once more, each time.",
    tests: ["unit/store/bounded-wait.test.ts"],
  },
  {
    name: "held-rows-are-not-looked-for",
    promise: "G6",
    file: "packages/gateway/src/guard/held-rows.ts",
    find: "for no key update skip locked",
    replace: "for key share skip locked",
    breaks: "Which rows are held is found out one wait at a time, while their neighbours wait too.",
    tests: ["real/guard-slow-rows.test.ts"],
  },
  {
    name: "poison-stays-in-the-batch",
    promise: "G6",
    file: "packages/gateway/src/guard/batch.ts",
    find: "parts.slowRows.mark(resource);",
    replace: "",
    breaks: "A write that failed its batch is put into the next batch, and fails that as well.",
    tests: ["real/guard-slow-rows.test.ts"],
  },
  {
    name: "transactions-wait-for-a-row-known-to-be-held",
    promise: "G6",
    file: "packages/gateway/src/store/lanes.ts",
    find: "(isSlow() ? undefined : await work(connection))",
    replace: "await work(connection)",
    breaks: "Transactions that all want one held row take the connections of the others one after another.",
    tests: ["real/guard-slow-rows.test.ts"],
  },
  {
    name: "one-held-row-takes-the-slow-lane",
    promise: "G6",
    file: "packages/gateway/src/store/lanes.ts",
    find: "slow.use({ wait: this.#wait, waiter, subject }, work)",
    replace: "slow.use({ wait: this.#wait, waiter, subject: subject === undefined ? subject : undefined }, work)",
    breaks: "Many transactions of one held row keep a row that is free again from being written.",
    tests: ["real/guard-slow-rows.test.ts"],
  },
];
