// A real browser for tests of pages: what playwright-core has to be given to start it.
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { scratchFolder } from "../process/orphans.js";
import { programOf } from "../programs/programs.js";

export interface ChromiumLaunch {
  readonly executablePath: string;
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

export async function chromiumLaunch(): Promise<ChromiumLaunch> {
  const { binary, libraryPath } = await programOf("chromium");
  const env = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  // Its own sandbox needs rights that containers and root do not have; the pages are ours.
  const launch = { executablePath: binary, args: ["--no-sandbox"] };
  if (libraryPath === "") return { ...launch, env };
  // It was unpacked, and so were its fonts: nothing of the system names them.
  const folder = scratchFolder("chromium");
  const fonts = join(dirname(binary), "../../share/fonts");
  const configuration = join(folder, "fonts.conf");
  await writeFile(configuration, `<fontconfig><dir>${fonts}</dir><dir>/usr/share/fonts</dir><cachedir>${folder}</cachedir></fontconfig>`);
  return { ...launch, env: { ...env, LD_LIBRARY_PATH: libraryPath, FONTCONFIG_FILE: configuration } };
}
