// Which images the tests run on: those of docker-compose.yml, so that what is tested is what is shipped. It must not name a tag itself.
import { readFile } from "node:fs/promises";

const composeFile = new URL("../../../../docker-compose.yml", import.meta.url);

/** The image whose repository has this name, with its tag, as the compose file pins it. */
export async function composeImage(repository: "redis" | "postgres"): Promise<string> {
  const compose = await readFile(composeFile, "utf8");
  const image = new RegExp(`^\\s*image:\\s*(${repository}:\\S+)\\s*$`, "m").exec(compose)?.[1];
  if (image === undefined) throw new Error(`docker-compose.yml pins no image of ${repository}`);
  return image;
}
