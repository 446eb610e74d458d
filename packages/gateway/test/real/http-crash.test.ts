// The gateway is killed while it works, repeatedly. What clients were told must be true.
import { queryAt, takePort } from "@palisade/testkit";
import { describe, eventually, expect, test, uniqueName } from "../support/fixtures.js";
import { type Kept, violations } from "../support/write-history.js";
import { randomFrom, Writers } from "../support/writers.js";

const kills = 3;
const writesBetweenKills = 60;

async function keptIn(databaseUrl: string, prefix: string): Promise<readonly Kept[]> {
  const text = "select resource, rev, token, seq from palisade.history where starts_with(resource, $1)";
  const rows = await queryAt<Record<string, string>>(databaseUrl, text, [prefix]);
  return rows.map(({ resource = "", rev, token, seq }) => ({ resource, rev: Number(rev), token: Number(token), seq: Number(seq) }));
}

describe("kill -9 of a gateway under load", () => {
  test("G3 every write that was accepted is there once, no write that was refused is, and no token ever fell", async ({
    database,
    gateway: other,
    startProgram,
    onTestFinished,
  }) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const env = { DATABASE_URL: database.url, PORT: String(await takePort()), PALISADE_HISTORY: "on" };
    let victim = await startProgram(env);
    const prefix = uniqueName("crash");
    const writers = new Writers({
      urls: [victim.url, victim.url, other.url],
      resources: [1, 2, 3].map((n) => `${prefix}/${n}`),
      writers: 12,
      random: randomFrom(seed),
    });
    onTestFinished(async () => void (await writers.stop()));
    for (let kill = 0; kill < kills; kill++) {
      const goal = writers.accepted + writesBetweenKills;
      await eventually(() => writers.accepted).toBeGreaterThan(goal);
      await victim.child.kill();
      victim = await startProgram(env);
    }
    const told = await writers.stop();
    await victim.stop();
    const kinds = new Set(told.map(({ answer }) => (answer.kind === "refused" ? answer.code : answer.kind)));
    expect([...kinds]).toEqual(expect.arrayContaining(["accepted", "unknown", "fencing_token_stale"]));
    expect({ seed, violations: violations(told, await keptIn(database.url, prefix)) }).toEqual({ seed, violations: [] });
  });
});
