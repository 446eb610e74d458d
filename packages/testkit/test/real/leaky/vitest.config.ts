// A run of its own for files that leak on purpose, with the servers and the guard of the real project.
import { defineConfig } from "vitest/config";

const testkit = new URL("../../../src/vitest/", import.meta.url).pathname;

export default defineConfig({
  root: new URL(".", import.meta.url).pathname,
  oxc: { target: "es2022" },
  test: {
    include: ["*.leaky.ts"],
    globalSetup: [`${testkit}global-setup.ts`],
    setupFiles: [`${testkit}leak-guard.ts`],
    reporters: ["json"],
    maxWorkers: 2, // So that some files share a process, as they do in the real project.
    isolate: false,
  },
});
