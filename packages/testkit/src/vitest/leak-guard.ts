// A set-up file of vitest: fails every test file that leaves processes or connections to the shared
// servers behind. It wraps the whole file, because only then have its afterAll hooks and its
// file-wide fixtures had their turn.
import { aroundAll } from "vitest";
import { leaksOf, watchForLeaks } from "./leaks.js";
import { sharedServers } from "./shared-servers.js";

watchForLeaks();

aroundAll(async (runFile) => {
  await runFile();
  const { postgresUrl, workers, redisUrls } = sharedServers();
  const leaks = await leaksOf(
    [postgresUrl, ...workers.map(({ adminUrl }) => adminUrl), ...redisUrls].map((url) => Number(new URL(url).port)),
  );
  if (leaks.length > 0) throw new Error(`this file leaves behind:\n  ${leaks.join("\n  ")}`);
});
