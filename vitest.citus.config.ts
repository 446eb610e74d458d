// `npm run citus`: the gateway's tests on a Citus cluster of one coordinator and two workers. Files
// of test/real run unchanged: the database that they are given is the coordinator's, migrated and
// distributed. What a file starts itself, it starts without Citus: such files have relatives in
// test/citus.
import { defineConfig } from "vitest/config";
import base, { patient, shared } from "./vitest.config.js";

const reused = [
  "fenced-tables",
  "group-commit",
  "rights",
  "held-rows",
  "histories",
  "http-answers",
  "http-drain",
  "http-routes",
  "own-tables",
  "patches",
  "raises",
  "stale-writes-are-rejected",
  "store-pooler",
  "transactions",
];

/** Tests of these files that have no place on Citus, and why. */
const leftOut: Readonly<Record<string, readonly string[]>> = {
  "they count statements or look at a batch, and a write there is a transaction of its own": [
    "of a lease that was lost locks rows once, and from then on none",
    "sends the writes of one turn of the event loop as one statement, within its limits",
    "is bounded in writes and in bytes, and says overloaded beyond that",
    "may deadlock with another session: it is retried, and every row is written",
    "are one row of one statement, and only the first of them made the document",
    "do not fail the neighbours of their batch, and are found in one go",
    "that share a statement are not in its answer where they are large, and each caller gets its own",
    "patches lose no race with the puts of their own gateway, however many there are",
  ],
  "a write there is a transaction: where no commit was sent, it is known not to be applied": [
    "when closing takes too long, what was not sent is not applied and what was sent is unknown",
    "whose session ends under way are each told that nobody knows, and none is sent again",
    "that waits when the store closes is not applied, and one that was sent is unknown",
  ],
  "they put a row trigger on the table, which Citus has not": [
    "is given up after eight races lost, as not applied, and not before",
    "allows is refused alone, and then fails no neighbour",
    "no statement of a write is compiled before it runs",
  ],
  "a gateway there has connections for each worker, and the pool has one session for each gateway": [
    "in session mode G3 two gateways with different settings behind one pool run each its own statement",
  ],
  "not promised there, or refused (docs/citus.md)": [
    "not even the owner lowers a fence past the record",
    "a holder that waited for another begins again, and whoever read before presenting too",
  ],
};
const titles = Object.values(leftOut).flat();

export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    ...patient,
    name: "citus",
    // A write there is several messages and three servers take part; of a property test it is some thousand.
    testTimeout: 3 * patient.testTimeout,
    hookTimeout: 3 * patient.hookTimeout,
    maxWorkers: base.test?.maxWorkers,
    teardownTimeout: base.test?.teardownTimeout,
    include: ["packages/*/test/citus/**/*.test.ts", ...reused.map((file) => `packages/gateway/test/real/${file}.test.ts`)],
    testNamePattern: new RegExp(`^(?!.*(?:${titles.join("|")}))`),
  },
});
