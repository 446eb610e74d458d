// Two projects: "unit" needs no server and belongs to `npm run check`; "real" runs against real Redis and Postgres, started once for all of its files.
import { defineConfig } from "vitest/config";

const typescriptSources = { oxc: { target: "es2022" } } as const;

export default defineConfig({
  ...typescriptSources,
  test: {
    projects: [
      {
        ...typescriptSources,
        test: { name: "unit", include: ["packages/*/test/unit/**/*.test.ts", "tools/test/**/*.test.ts"], testTimeout: 20_000 },
      },
      {
        ...typescriptSources,
        test: {
          name: "real",
          include: ["packages/*/test/real/**/*.test.ts"],
          globalSetup: ["packages/testkit/src/vitest/global-setup.ts"],
          setupFiles: ["packages/testkit/src/vitest/leak-guard.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
