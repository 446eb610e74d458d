// The program on several fleets: how they stand, what belongs to which, and one added and removed.
import { createLocker } from "@palisade/lock";
import { describe, expect, test } from "@palisade/testkit/vitest";
import { palisade } from "../support/terminal.js";

const ttlMs = 300;
const patient = { timeout: 90_000 };

describe("several fleets", () => {
  test("are named, added and removed, and each command says which one a resource belongs to", patient, async ({ fleet }) => {
    const { urls } = await fleet({ nodes: 6 });
    const [east, west] = [urls.slice(0, 3), urls.slice(3)];
    await using alone = createLocker({ nodes: west, ttlMs, maxTtlMs: ttlMs, nodeTimeoutMs: ttlMs });
    await alone.ready();
    const named = (name: string, of: readonly string[]) => of.map((url) => `${name}=${url}`);
    const onlyWest = { PALISADE_REDIS_URLS: named("west", west).join(",") };
    const both = { PALISADE_REDIS_URLS: [...named("east", east), ...named("west", west)].join(",") };
    expect((await palisade(["fleets", "name", "west"], { env: onlyWest })).output).toMatch(/^west\tused\t1\t\S+ \S+ \S+\n$/);
    await using locker = createLocker({ fleets: { east, west }, ttlMs, maxTtlMs: ttlMs, nodeTimeoutMs: ttlMs });
    await locker.ready();
    const added = await palisade(["fleets", "add", "east"], { env: both, columns: 200 });
    expect(added).toMatchObject({
      exitCode: 0,
      errors: "",
      output: expect.stringContaining("Version 2 of the list; resources belong to east, west"),
    });

    await using lease = await locker.acquire("orders/42", { renew: true });
    const inspected = await palisade(["inspect", "orders/42"], { env: both, columns: 200 });
    expect(inspected.output).toMatch(/orders\/42 \(fleet (east|west)\) is held by/);
    expect((await palisade(["ls"], { env: both })).output).toMatch(new RegExp(`^orders/42\t.*\t${lease.token}\t(east|west)\n$`));
    const nodes = await palisade(["nodes"], { env: both, columns: 300 });
    expect(nodes).toMatchObject({ exitCode: 0, output: expect.stringContaining("fleet east: 3 of 3 nodes vote, 2 are needed") });
    expect(nodes.output).toContain("west/n1");
    await lease.release();

    const asked = await palisade(["fleets", "remove", "east"], { env: both, columns: 80, typed: "west\n" });
    expect(asked).toMatchObject({ exitCode: 1, output: "Nothing was changed.\n" });
    expect(await palisade(["fleets", "remove", "east", "--lost", "--yes"], { env: both })).toMatchObject({
      exitCode: expect.any(Number),
      errors: expect.stringContaining("east answers, so it is not lost"),
    });
    const removed = await palisade(["fleets", "remove", "east", "--yes"], { env: both, columns: 200 });
    expect(removed).toMatchObject({ exitCode: 0, output: expect.stringContaining("Version 3 of the list; resources belong to west") });
  });

  test("L2 F1 one that is lost, of which an older version told nobody, is removed with its longest lease", patient, async ({ fleet }) => {
    const { urls, nodes } = await fleet({ nodes: 6 });
    const [east, west] = [urls.slice(0, 3), urls.slice(3)];
    await using locker = createLocker({ fleets: { east, west }, ttlMs, maxTtlMs: ttlMs, nodeTimeoutMs: ttlMs });
    await locker.ready();
    const env = { PALISADE_REDIS_URLS: [...east.map((url) => `east=${url}`), ...west.map((url) => `west=${url}`)].join(",") };
    for (const node of nodes.slice(3)) await node.cli("DEL", "{palisade}:marks");
    const doctor = await palisade(["doctor"], { env, columns: 300 });
    expect(doctor.output).toMatch(/fleet east: its leases may last 300 ms, which an older version did not tell west/);
    await Promise.all(nodes.slice(0, 3).map((node) => node.kill()));
    const down = await palisade(["nodes", "--timeout", "2"], { env, columns: 300 });
    expect(down).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining("fleet east: 0 of 3 nodes vote, 2 are needed: no lease of its"),
    });
    const refused = await palisade(["fleets", "remove", "east", "--lost", "--yes", "--timeout", "2"], { env });
    expect(refused).toMatchObject({
      exitCode: 2,
      errors: expect.stringMatching(/how long leases of east may last is not known.*--max-ttl/),
    });
    const removed = await palisade(["fleets", "remove", "east", "--lost", "--max-ttl", "300", "--yes", "--timeout", "2"], {
      env,
      columns: 200,
    });
    expect(removed.output).toContain("Version 2 of the list; resources belong to west");
  });

  test("are refused before anything is asked where the words or the addresses make no sense", async () => {
    const env = { PALISADE_REDIS_URLS: "east=redis://127.0.0.1:1,west=redis://127.0.0.1:2" };
    const told = async (args: readonly string[], given = env) => (await palisade(args, { env: given })).errors;
    expect(await told(["fleets", "grow", "east"])).toContain("fleets knows name, add and remove");
    expect(await told(["fleets", "add"])).toContain("fleets add needs the name of a fleet");
    expect(await told(["fleets", "add", "east", "--lost"])).toContain("--lost belongs to fleets remove");
    expect(await told(["fleets", "remove", "east", "--max-ttl", "500"])).toContain("--max-ttl belongs to fleets remove --lost");
    expect(await told(["fleets", "remove", "east", "--lost", "--max-ttl", "1 s"])).toContain("--max-ttl is a whole number of milliseconds");
    expect(await told(["fleets", "remove", "east"])).toContain("give --yes");
    expect(await told(["fleets", "add", "north"])).toContain("north is no fleet of this locker, which has east, west");
    expect(await told(["nodes"], { PALISADE_REDIS_URLS: "east=redis://127.0.0.1:1,redis://127.0.0.1:2" })).toContain(
      "either all nodes have the name",
    );
  });
});
