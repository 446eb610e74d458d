// Large answers: how many bytes of them wait for callers that do not read, and that they stand in
// nobody's way.
import { makeApiKey } from "@palisade/gateway";
import { describe, eventually, expect, test, uniqueName } from "../support/fixtures.js";
import { get, put, RawConnection, seal, send } from "../support/wire.js";

const [greedy, other] = [makeApiKey(), makeApiKey()];
const scopes = ["read:", "write:", "seal:"];
const apiKeys = [
  { id: "greedy", sha256: greedy.sha256, scopes },
  { id: "other", sha256: other.sha256, scopes },
];
const by = ({ key }: { readonly key: string }) => ["Authorization", `Bearer ${key}`] as const;
const MiB = 1024 * 1024;
/** Two unread answers of eight million bytes are one caller's share. */
const limits = { apiKeys, documentLimitBytes: 8 * MiB, answerBudgetBytes: 38 * MiB, answerWaitMs: 50 };

/** Documents of so many letters. */
const STORED = `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, value, updated_at)
  select name, 1, 0, 1, 1, 'put', false, to_jsonb(repeat('x', $2)), now() from unnest($1::text[]) as name`;
const namesOf = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}/${index}`);

describe("answers that nobody reads", () => {
  test("G6 hold a bounded number of bytes: one caller is refused above its share, and others are not", async ({
    startGateway,
    connect,
  }) => {
    const gateway = await startGateway({ ...limits, answerLookMs: 600_000 });
    const names = namesOf(uniqueName("large"), 4);
    await (await connect()).query(STORED, [names, 8_000_000]);
    const unread: RawConnection[] = [];
    for (const name of names.slice(0, 2)) {
      const connection = new RawConnection(gateway.url);
      unread.push(connection);
      connection.send(`GET /v1/resources/${name} HTTP/1.1\r\nHost: x\r\nAuthorization: ${by(greedy)[1]}\r\n\r\n`);
      await connection.receives(/200 OK/);
      connection.socket.pause();
    }
    const refused = await get(gateway.url, names[2] ?? "", ...by(greedy));
    expect(refused).toMatchObject({ status: 503, json: { code: "unavailable", outcome: "not_applied" }, headers: { "retry-after": "1" } });
    expect((await get(gateway.url, names[3] ?? "", ...by(other))).text).toHaveLength(8_000_002);
    const small = uniqueName();
    expect(await put(gateway.url, small, { token: 1, value: 1, headers: by(greedy) })).toMatchObject({ status: 201 });
    expect(await get(gateway.url, small, ...by(greedy))).toMatchObject({ status: 200, text: "1" });
    for (const { socket } of unread) socket.destroy();
    await eventually(async () => (await get(gateway.url, names[2] ?? "", ...by(greedy))).status).toBe(200);
  });

  test("G6 end their connection, and hold nothing from then on", async ({ startGateway, connect }) => {
    const gateway = await startGateway({ ...limits, answerLookMs: 100 });
    const name = uniqueName("large");
    await (await connect()).query(STORED, [[name], 8_000_000]);
    const connection = new RawConnection(gateway.url);
    connection.send(`GET /v1/resources/${name} HTTP/1.1\r\nHost: x\r\nAuthorization: ${by(greedy)[1]}\r\n\r\n`);
    await connection.receives(/200 OK/);
    connection.socket.pause();
    const held = async () => (await (await fetch(`${gateway.adminUrl}/metrics`)).text()).match(/^palisade_answer_bytes_held (\d+)/m)?.[1];
    await eventually(held).toBe("0");
    connection.socket.resume();
    await connection.closed;
    expect(connection.received.length).toBeLessThan(8_000_000);
  });
});

test("G6 a page of documents ends before they are too large together, and a document of any size is shown alone", async ({
  gateway,
  connect,
}) => {
  const prefix = uniqueName("page");
  const client = await connect();
  await client.query(STORED, [namesOf(`${prefix}/a`, 3), 1_500_000]);
  await client.query(STORED, [[`${prefix}/b`], 6_000_000]);
  await client.query(STORED, [namesOf(`${prefix}/c`, 40), 10]);
  const lengths: number[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const path: string = `/v1/resources?prefix=${prefix}/&include=documents&limit=40${cursor === "" ? "" : `&cursor=${cursor}`}`;
    const { json } = await send(gateway.url, { method: "GET", path });
    lengths.push(json.items.length);
    cursor = json.nextCursor;
  }
  expect(lengths).toEqual([2, 1, 1, 40]);
});

test("G6 what is stored compressed in more than 32 KiB is read alone: as text it may be ninety times as large", async ({
  store,
  connect,
}) => {
  const [plain, little, much] = namesOf(uniqueName("stored"), 3);
  const client = await connect();
  const stored = (name: string | undefined, text: string) =>
    client.query(STORED.replace("repeat('x', $2)", `(select string_agg(${text}, '') from generate_series(1, $2::int) as i)`), [
      [name],
      4_000,
    ]);
  await stored(plain, "encode(sha256(i::text::bytea), 'base64')"); // No three letters of it come twice nearby.
  await stored(little, "'0123456789abcdef'");
  await stored(much, "md5(i::text) || repeat('x', 28)");
  const reads = await Promise.all([plain, little, much].map(async (name = "") => (await store.read(name)).kind));
  expect(reads).toEqual(["found", "found", "large"]);
  expect(await store.readWhole(much ?? "")).toMatchObject({ kind: "found", value: expect.objectContaining({ length: 240_002 }) });
});

describe("sealed documents", () => {
  test("G6 of one transaction are bounded together, before anything is sealed", async ({ startGateway, connect }) => {
    const gateway = await startGateway({ documentLimitBytes: MiB });
    const names = namesOf(uniqueName("sealed"), 3);
    const client = await connect();
    await client.query(STORED, [names, 1_000_000]);
    const sealAll = (count: number) => {
      const body = JSON.stringify({ operations: names.slice(0, count).map((resource) => ({ op: "seal", resource })) });
      const headers = ["Content-Type", "application/json", "Fencing-Token", "5"];
      return send(gateway.url, { method: "POST", path: "/v1/transactions", headers, body });
    };
    expect(await sealAll(3)).toMatchObject({ status: 413, json: { code: "answer_too_large" } });
    expect((await get(gateway.url, names[0] ?? "")).headers["fencing-token"]).toBe("1");
    const { status, text } = await sealAll(2);
    expect([status, text.length > 2_000_000]).toEqual([200, true]);
    // One of its own size is what was stored under a higher limit.
    const [larger = ""] = names;
    await client.query("update palisade.resources set value = to_jsonb(repeat('x', 3000000)) where resource = $1", [larger]);
    expect(await sealAll(1)).toMatchObject({ status: 200 });
    expect(await sealAll(2)).toMatchObject({ status: 413 });
    expect(await seal(gateway.url, larger, 5)).toMatchObject({ status: 200 });
    expect(await get(gateway.url, larger)).toMatchObject({ status: 200 });
  });

  test("G6 that share a statement are not in its answer where they are large, and each caller gets its own", async ({
    store,
    gateway,
    connect,
  }) => {
    const names = namesOf(uniqueName("sealed"), 12);
    const [first, ...others] = names;
    await (await connect()).query(STORED, [names, 300_000]);
    const verdicts = await Promise.all(names.map((resource) => store.write({ op: "seal", resource, token: 5 })));
    expect(verdicts.map((verdict) => [verdict.kind, "value" in verdict])).toEqual(names.map(() => ["accepted", false]));
    const answers = await Promise.all(others.map((name) => seal(gateway.url, name, 6)));
    expect(answers.map(({ status, json }) => [status, json.resource, json.rev, json.value.length])).toEqual(
      others.map((name) => [200, name, 1, 300_000]),
    );
    expect(await get(gateway.url, first ?? "")).toMatchObject({ status: 200, headers: { "fencing-token": "5", etag: '"1"' } });
  });
});
