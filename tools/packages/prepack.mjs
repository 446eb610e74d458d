// Runs before a package is packed, by whatever packs it: compiles it, so that no tarball is
// without code, and refuses npm for a package whose workspace: versions npm would leave in the
// manifest.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { run } from "../go/child.mjs";

const { name, dependencies = {} } = JSON.parse(readFileSync("package.json", "utf8"));
const isNpm = (process.env.npm_config_user_agent ?? "").startsWith("npm/");
if (isNpm && Object.values(dependencies).some((version) => version.startsWith("workspace:"))) {
  console.error(
    `palisade: npm would leave "workspace:" in the manifest of ${name}, which nobody could install. Use: npm run packages -- --out DIR`,
  );
  process.exit(1);
}
process.exitCode = await run([process.execPath, "tools/go.mjs", "build"], { output: "kept" }).then(({ code, output }) => {
  if (code !== 0) console.error(`palisade: ${basename(process.cwd())} does not compile:\n${output}`);
  return code;
});
