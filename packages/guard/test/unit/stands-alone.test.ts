// A service that imports the guard installs nothing with it, and loads nothing but the guard.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const root = new URL("../../", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));

test("the guard depends on nothing, and its peers may be missing", () => {
  expect(manifest.dependencies).toBeUndefined();
  for (const peer of Object.keys(manifest.peerDependencies)) expect(manifest.peerDependenciesMeta[peer]).toEqual({ optional: true });
});

test("the guard imports only its own files", () => {
  const imports = readdirSync(new URL("src/", root)).flatMap((name) =>
    [...readFileSync(new URL(`src/${name}`, root), "utf8").matchAll(/from "([^"]+)"|import\("([^"]+)"\)/g)].map(
      ([, from, dynamic]) => from ?? dynamic ?? "",
    ),
  );
  expect(imports.length).toBeGreaterThan(10);
  expect(imports.filter((specifier) => !/^\.\/[a-z-]+\.js$/.test(specifier))).toEqual([]);
});
