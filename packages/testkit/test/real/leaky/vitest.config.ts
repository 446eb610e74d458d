// A run for files that leak on purpose, with the servers and the guard of the real project.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const testkit = fileURLToPath(new URL("../../../src/vitest/", import.meta.url));

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  oxc: { target: "es2022" },
  test: {
    include: ["*.leaky.ts"],
    globalSetup: [`${testkit}global-setup.ts`],
    setupFiles: [`${testkit}leak-guard.ts`],
    reporters: ["json"],
    testTimeout: 60_000, // Containers on a busy machine take their time.
    hookTimeout: 60_000, // The guard looks at what is left in one.
    maxWorkers: 2, // So that some files share a process, as they do in the real project.
    isolate: false,
  },
});
