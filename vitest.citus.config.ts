// `npm run citus`: the gateway's tests on a Citus cluster of one coordinator and two workers. Files of test/real run unchanged: the database that they are given is the
// coordinator's, migrated and distributed.
import { defineConfig } from "vitest/config";
import base, { patient, shared } from "./vitest.config.js";

export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    ...patient,
    name: "citus",
    maxWorkers: base.test?.maxWorkers,
    teardownTimeout: base.test?.teardownTimeout,
    include: ["packages/*/test/citus/**/*.test.ts"],
  },
});
