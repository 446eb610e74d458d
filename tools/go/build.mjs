// Compiles the workspace, incrementally. Decides only when incremental would be wrong: tsc trusts its own records and does not see that an output was deleted.
import { existsSync } from "node:fs";
import { inRoot, packageDirectories } from "./checkout.mjs";
import { run } from "./child.mjs";
import { step } from "./progress.mjs";
import { Refusal } from "./refusal.mjs";

export async function build() {
  const tsc = [process.execPath, inRoot("node_modules", "typescript", "bin", "tsc"), "-b"];
  const outputs = packageDirectories().map((directory) => inRoot(directory, "dist"));
  const command = outputs.every((directory) => existsSync(directory)) ? tsc : [...tsc, "--force"];
  const { code, output } = await step("compiling", () => run(command, { output: "kept" }));
  if (code !== 0) throw new Refusal(`the sources do not compile.\n${output}`);
}
