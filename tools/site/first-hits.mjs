// What users type into the search of the site, and the page that it has to answer with first.
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { inRoot } from "../run.mjs";

/** Of an address its beginning. */
const firstHits = {
  "lease lost": "packages/lock/#when-is-a-lease-lost",
  retry: "packages/client/#the-calls-and-what-they-retry",
  timeout: "packages/lock/#how-do-i-acquire",
  TypeScript: "docs/packages.html#what-they-are-tried-with",
  ElastiCache: "docs/need.html",
  "migrate from redlock": "docs/migrating.html",
  "redis-semaphore": "docs/migrating.html",
  BullMQ: "examples/#bullmq",
  "pg-boss": "examples/#pg-boss",
  cron: "examples/#cron",
  "leader election": "packages/lock/#how-do-i-elect-a-leader",
  "wait for lock": "packages/lock/#how-do-i-wait",
  "mock locker in tests": "packages/lock/#how-do-i-test",
  waitMs: "packages/lock/#how-do-i-acquire",
  createLocker: "api/lock/#createlocker",
  fencing_token_stale: "docs/errors.html",
  LOCK_NO_QUORUM: "docs/errors.html",
  PLS01: "docs/errors.html",
  DATABASE_URL: "docs/settings.html",
  Prisma: "docs/drivers.html",
  drizzle: "docs/drivers.html",
  Python: "examples/#",
  "advisory lock": "docs/need.html",
  "payment e-mail side effects": "docs/need.html",
  idempotency: "docs/need.html",
  "prometheus alerts": "docs/operating.html",
  "backup restore": "docs/operating.html",
  OpenTelemetry: "docs/operating.html#traces",
  "docker compose": "docs/growing.html#one-machine",
  "admin page": "docs/page.html",
};

/** @param {string} dist the built site @param {string} base where it is served @returns {Promise<readonly string[]>} what is not found first */
export async function badHits(dist, base) {
  const fromSite = createRequire(inRoot("site", "package.json"));
  const { default: MiniSearch } = await import(pathToFileURL(fromSite.resolve("minisearch")).href);
  const { miniSearch } = await import(pathToFileURL(inRoot("site", ".vitepress", "search.mjs")).href);
  const chunks = join(dist, "assets", "chunks");
  const file = readdirSync(chunks).find((name) => name.startsWith("@localSearchIndexroot")) ?? "there is no index";
  const { default: json } = await import(pathToFileURL(join(chunks, file)).href);
  const fields = { fields: ["title", "titles", "text"], storeFields: ["title", "titles"] };
  const index = MiniSearch.loadJSON(json, { ...fields, ...miniSearch.options, searchOptions: miniSearch.searchOptions });
  return Object.entries(firstHits).flatMap(([words, wanted]) => {
    const first = String(index.search(words)[0]?.id ?? "nothing");
    return first.startsWith(base + wanted) ? [] : [`"${words}" finds ${first} first, not ${wanted}`];
  });
}
