// Nothing is read from beside the code at run time: users bundle the gateway into one file.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "vitest";

test("the browser half is what is embedded, and small", () => {
  const script = fileURLToPath(new URL("../../scripts/embed.mjs", import.meta.url));
  execFileSync(process.execPath, [script, "--check"], { stdio: "pipe" });
});
