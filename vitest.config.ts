// Projects: "unit" needs no server and belongs to `npm run check`; "models" needs none either, but a minute; "real" runs against real Redis and Postgres, started
// once for all of its files.
import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";

const inContainers = process.env.PALISADE_TEST_PROVIDER === "docker";
// A container takes a second where a process takes ten milliseconds, and on a busy machine several.
const slowness = inContainers ? 3 : 1;

/** Only what never ends is to fail by it: on a machine with ten times as much work as cores everything takes ten times as long. */
const patienceMs = 60_000 * slowness;

const specification = "tools/test/specification.test.ts";

export const shared = {
  oxc: { target: "es2022" }, // Node 20 does not know `await using`.
  test: {
    pool: "forks", // A server dies with the thread that started it, so tests run in processes.
    expect: { poll: { timeout: 10_000 * slowness } },
    isolate: false, // A new process for every file would cost more than most files take; what a file leaves behind fails it (leak-guard.ts).
  },
} as const;

/** Of tests on real servers. */
export const patient = {
  globalSetup: ["packages/testkit/src/vitest/global-setup.ts"],
  setupFiles: ["packages/testkit/src/vitest/leak-guard.ts"],
  testTimeout: patienceMs,
  hookTimeout: patienceMs,
} as const;

export default defineConfig({
  test: {
    // Tests wait more than they compute. Files that took longest the last time start first; vitest remembers that by itself.
    maxWorkers: Math.min(availableParallelism() * 2, 8),
    teardownTimeout: 10_000 * slowness, // For the end of the shared servers.
    // What files become is kept below node_modules, by their content: a run that changes little transforms little.
    experimental: { fsModuleCache: true },
    projects: [
      {
        ...shared,
        test: {
          ...shared.test,
          name: "unit",
          include: ["packages/*/test/unit/**/*.test.ts", "tools/test/**/*.test.ts"],
          exclude: [...configDefaults.exclude, specification, "tools/test/{real,long}/**"],
          testTimeout: patienceMs,
        },
      },
      { ...shared, test: { ...shared.test, name: "models", include: [specification] } },
      {
        ...shared,
        test: {
          ...shared.test,
          name: "real",
          include: ["packages/*/test/real/**/*.test.ts", "tools/test/real/**/*.test.ts"],
          // What is true of containers only can be tested only on them.
          exclude: [...configDefaults.exclude, ...(inContainers ? [] : ["packages/testkit/test/real/docker/**"])],
          ...patient,
        },
      },
      // Whole fault runs, releases and stories, with servers of their own: `npm test -- --project="*"` has them and the models as well.
      { ...shared, test: { ...shared.test, ...patient, name: "long", include: ["{packages/*,tools}/test/long/**/*.test.ts"] } },
    ],
  },
});
