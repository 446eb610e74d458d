// Names the system that binaries are built or fetched for, because one clone may be used from
// several.
import { readFile } from "node:fs/promises";
import { arch, platform } from "node:os";

/** For example debian12-x64. */
export async function distribution(): Promise<string> {
  // Not Linux, or a bare one.
  const text = await readFile("/etc/os-release", "utf8").catch(() => "");
  const field = (name: string): string => new RegExp(`^${name}="?([\\w.-]+)`, "m").exec(text)?.[1] ?? "";
  return `${field("ID") || platform()}${field("VERSION_ID")}-${arch()}`;
}
