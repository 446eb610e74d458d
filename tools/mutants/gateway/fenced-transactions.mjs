// Mutants of the guard as TypeScript sends it through any driver, and of the transactions that it
// opens itself (G1, G3).
const guard = "packages/gateway/src/own-tables/guard.ts";
const transaction = "packages/gateway/src/own-tables/fenced-transaction.ts";

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const fencedTransactions = [
  {
    name: "guard-holds-for-its-own-statement",
    promise: "G1",
    file: guard,
    find: '["savepoint palisade_guard", "release savepoint palisade_guard", ...calls, ...further]',
    replace: "[...calls, ...further]",
    breaks: "On a pool, or on a client without BEGIN, the guard is accepted and ends with its statement.",
    tests: ["real/own-tables-drivers.test.ts"],
  },
  {
    name: "refusal-through-a-library-not-known",
    promise: "G1",
    file: "packages/gateway/src/own-tables/server-error.ts",
    find: 'const wrappers = ["cause", "driverError", "meta", "driverAdapterError"];',
    replace: 'const wrappers = ["driverError"];',
    breaks: "A stale holder behind drizzle or Prisma is not told that its lease is lost.",
    tests: ["real/own-tables-drivers.test.ts"],
  },
  {
    name: "name-of-a-resource-not-escaped",
    promise: "G1",
    file: "packages/gateway/src/own-tables/statement.ts",
    find: "/[^\\w./@ -]/gu",
    replace: "/[^\\w./@ -?]/gu",
    breaks: "A quote in the name of a resource ends the literal, and the rest of the name is SQL.",
    tests: ["real/own-tables-drivers.test.ts"],
  },
  {
    name: "lost-lease-commits",
    promise: "G1",
    file: transaction,
    find: "const value = await guarded(tx, requests, work); checkHeld(list);",
    replace: "const value = await guarded(tx, requests, work);",
    breaks: "A transaction is committed after the signal of its lease has aborted.",
    tests: ["real/own-tables-transactions.test.ts"],
  },
  {
    name: "lost-commit-is-a-refusal",
    promise: "G3",
    file: transaction,
    find: "if (server !== undefined && !mayBeCommitted(server)) return error;",
    replace: "if (server === undefined || !mayBeCommitted(server)) return error;",
    breaks: "A connection lost during COMMIT looks like any other failure, although everything may be stored.",
    tests: ["real/own-tables-transactions.test.ts"],
  },
  {
    name: "own-ended-session-is-a-refusal",
    promise: "G3",
    file: transaction,
    find: "if (server !== undefined && !mayBeCommitted(server)) return error;",
    replace: 'if (server !== undefined && (!mayBeCommitted(server) || server.code === "57P01")) return error;',
    breaks: "A session that the server ends during COMMIT looks like a refusal.",
    tests: ["real/own-tables-transactions.test.ts"],
  },
  {
    name: "rolled-back-is-called-committed",
    promise: "G3",
    file: transaction,
    find: "if ((await readMark(tx)) === mark) return value;",
    replace: "if ((await readMark(tx).catch(() => mark)) === mark) return value;",
    breaks: "A transaction whose failed statement was ignored is reported as committed; Postgres rolled it back.",
    tests: ["real/own-tables-transactions.test.ts"],
  },
  {
    name: "unguarded-rest-is-called-committed",
    promise: "G1",
    file: transaction,
    find: "if ((await readMark(tx)) === mark) return value;",
    replace: "if ((await readMark(tx)) !== undefined) return value;",
    breaks: "Work that commits by itself and goes on without a guard is reported as guarded.",
    tests: ["real/own-tables-transactions.test.ts"],
  },
  {
    name: "rollback-hides-the-first-error",
    promise: "G3",
    file: transaction,
    find: "if (failure !== undefined) throw",
    replace: "if (failure !== undefined && done !== undefined) throw",
    breaks: "A rollback that fails as well is reported in place of the error that led to it.",
    tests: ["real/own-tables-transactions.test.ts"],
  },
];
