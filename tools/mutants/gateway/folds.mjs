// Mutants of puts that go as one row: which may, what each is told, and what is remembered
// (G1, G3, G8).

/** @type {readonly import("../mutant.mjs").Mutant[]} */
export const folds = [
  {
    name: "fold-has-one-revision",
    promise: "G3",
    file: "packages/gateway/src/guard/batch.ts",
    find: "writes.map(({ request }, index) => acceptedOf(request, row, writes.length - 1 - index))",
    replace: "writes.map(({ request }) => acceptedOf(request, row))",
    breaks: "Puts that were stored as one row are all told the revision of the last one: an entity tag that belongs to another's document.",
    tests: ["real/guard-folds.test.ts"],
  },
  {
    name: "failed-fold-is-refused-whole",
    promise: "G3",
    file: "packages/gateway/src/guard/batch.ts",
    find: "batch.length === 1 && only.fold.length === 0\n        ? [await failedAlone({ parts, sending, entry: only, failure })]",
    replace:
      "batch.length === 1\n        ? await Promise.all(writesOf(batch).map((entry) => failedAlone({ parts, sending, entry, failure })))",
    breaks: "One document that Postgres cannot keep has all writers of its fold told that theirs cannot be kept.",
    tests: ["real/guard-folds.test.ts"],
  },
  {
    name: "fold-over-another-token",
    promise: "G1",
    file: "packages/gateway/src/guard/write-queue.ts",
    find: "return request.token === first.request.token && verified",
    replace: "return request.token > 0 && verified",
    breaks: "Puts of two leases go as one row: a stale one is accepted with the newer, or the newer is refused with the stale one.",
    tests: ["real/guard-folds.test.ts"],
  },
  {
    name: "fold-over-a-condition",
    promise: "G3",
    file: "packages/gateway/src/guard/write-queue.ts",
    find: "seq === undefined && expected === undefined && idempotency",
    replace: "seq === undefined && expected !== 0 && idempotency",
    breaks: "A put with If-Match is accepted with its neighbours, whatever the revision is.",
    tests: ["real/guard-folds.test.ts"],
  },
  {
    name: "fold-over-another-holder",
    promise: "G8",
    file: "packages/gateway/src/guard/write-queue.ts",
    find: "verified === first.verified && request.holder === first.request.holder;",
    replace: "verified === first.verified;",
    breaks: "History and changes name the wrong writer.",
    tests: ["real/guard-folds.test.ts"],
  },
  {
    name: "replaced-documents-unread",
    promise: "G3",
    file: "packages/gateway/src/guard/plain-writes.ts",
    find: "documentArray(replaced)]",
    replace: "documentArray(replaced.slice(replaced.length))]",
    breaks: "A document that Postgres cannot keep is acknowledged where another put was waiting behind it.",
    tests: ["real/guard-folds.test.ts"],
  },
  {
    name: "fold-leaves-one-entry",
    promise: "G8",
    file: "packages/gateway/src/guard/fenced-statement.ts",
    find: "where folded.revisions > 1`;",
    replace: "where folded.revisions > 1000`;",
    breaks: "Of puts that were stored as one row, history and changes have the last one only.",
    tests: ["real/guard-folds.test.ts"],
  },
];
