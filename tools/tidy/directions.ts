// Which package may import which: the lock, the client and the guard none, the gateway the lock and
// the guard by their public names, and none knows that tests exist.
import type { Checkout, SourceFile } from "./checkout.js";
import { type Import, importsOf } from "./imports.js";
import type { Finding, Rule } from "./rule.js";

/** Workspace names that a package's source may import; one that is not listed may import any. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  lock: [],
  client: [],
  guard: [],
  gateway: ["@palisade/guard", "@palisade/guard/gateway", "@palisade/lock"],
  testkit: [],
};
const TEST_TOOLS = /^(vitest|@testcontainers\/|testcontainers|fast-check)(\/|$)/;

export const importDirections: Rule = {
  name: "imports point in one direction: lock, client and guard → none, gateway → lock and guard by name, none → tests",
  findings: (checkout) =>
    ["lock", "client", "guard", "gateway", "testkit", "dev", "demo-client", "bench", "robustness"].flatMap((name) =>
      judgePackage(checkout, name),
    ),
};

function judgePackage(checkout: Checkout, name: string): readonly Finding[] {
  const sources = checkout.sourcesOf(name).filter((file) => file.isCode);
  return sources.flatMap((file) => importsOf(file).flatMap((one) => judgeImport(name, file, one)));
}

function judgeImport(name: string, file: SourceFile, { specifier, target, offset }: Import): readonly Finding[] {
  const where = `${file.at(offset)}: ${specifier}`;
  if (target !== undefined && !target.startsWith(`packages/${name}/src/`)) return [`${where} leaves the package's source`];
  if (specifier.startsWith("@palisade/") && !(allowed[name] ?? [specifier]).includes(specifier))
    return [`${where} is not for ${name} to know`];
  if (["lock", "client", "guard", "gateway"].includes(name) && TEST_TOOLS.test(specifier)) return [`${where} belongs to tests`];
  return [];
}
