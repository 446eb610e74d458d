// G1 over real HTTP and a real Postgres: once a token was accepted, no lower one changes the
// resource, through any gateway and in any order of arrival.
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { type Answer, get, put, remove, seal, send } from "../support/wire.js";

const stale = { status: 412, json: { code: "fencing_token_stale" } };

function patch(base: string, name: string, { token, value }: { readonly token: number; readonly value: unknown }): Promise<Answer> {
  const headers = ["Content-Type", "application/merge-patch+json", "Fencing-Token", String(token)];
  return send(base, { method: "PATCH", path: `/v1/resources/${name}`, headers, body: JSON.stringify(value) });
}

describe("stale writes are rejected", () => {
  test("G1 a higher token is accepted, and so is the same one again", async ({ gateway: { url } }) => {
    const name = uniqueName();
    expect(await put(url, name, { token: 33, value: { by: 33 } })).toMatchObject({
      status: 201,
      json: { resource: name, token: 33, rev: 1 },
    });
    expect(await put(url, name, { token: 34, value: { by: 34 } })).toMatchObject({ status: 200, json: { token: 34, rev: 2 } });
    expect(await put(url, name, { token: 34, value: { by: 34, again: true } })).toMatchObject({ status: 200, json: { token: 34, rev: 3 } });
    expect(await get(url, name)).toMatchObject({
      status: 200,
      json: { by: 34, again: true },
      headers: { etag: '"3"', "fencing-token": "34" },
    });
  });

  test("G1 a lower token is refused for every way to write, changes nothing, and is told which token is current", async ({
    gateway: { url },
  }) => {
    const name = uniqueName();
    await put(url, name, { token: 34, value: { by: 34 } });
    const operations = [{ op: "put", resource: name, value: { by: 33 } }];
    const headers = ["Content-Type", "application/json", "Fencing-Token", "33"];
    for (const refused of [
      await put(url, name, { token: 33, value: { by: 33 } }),
      await patch(url, name, { token: 33, value: { by: 33 } }),
      await remove(url, name, { token: 33 }),
      await seal(url, name, 33),
      await send(url, { method: "POST", path: "/v1/transactions", headers, body: JSON.stringify({ operations }) }),
    ]) {
      expect(refused).toMatchObject({ ...stale, headers: { "content-type": "application/problem+json" } });
      expect(refused.json).toMatchObject({ resource: name, presentedToken: 33, currentToken: 34 });
    }
    expect(await get(url, name)).toMatchObject({ json: { by: 34 }, headers: { etag: '"1"', "fencing-token": "34" } });
  });

  test("G1 a deleted resource remembers its fence: the old holder cannot make it anew", async ({ gateway: { url } }) => {
    const name = uniqueName();
    for (const n of [1, 2]) await put(url, name, { token: 34, value: { n } });
    expect(await remove(url, name, { token: 35 })).toMatchObject({ status: 204, headers: { "fencing-token": "35", etag: '"3"' } });
    expect(await put(url, name, { token: 34, value: { by: 34 } })).toMatchObject({ ...stale, json: { currentToken: 35 } });
    expect(await put(url, name, { token: 34, value: {}, headers: ["If-None-Match", "*"] })).toMatchObject(stale);
    expect(await get(url, name)).toMatchObject({ status: 404, headers: { "fencing-token": "35" } });
    expect(await put(url, name, { token: 35, value: { by: 35 } })).toMatchObject({ status: 201, json: { rev: 4 } });
  });

  test("G1 a seal raises the fence with no write, of a resource that is there and of one that is not", async ({ gateway: { url } }) => {
    const name = uniqueName();
    expect(await seal(url, name, 7)).toMatchObject({ status: 200, json: { resource: name, token: 7, rev: 0, value: null } });
    expect(await put(url, name, { token: 6, value: {} })).toMatchObject(stale);
    expect(await put(url, name, { token: 7, value: { n: 1 }, headers: ["If-None-Match", "*"] })).toMatchObject({ status: 201 });
    expect(await seal(url, name, 9)).toMatchObject({ status: 200, json: { token: 9, rev: 1, value: { n: 1 } }, headers: { etag: '"1"' } });
    expect(await put(url, name, { token: 8, value: {} })).toMatchObject(stale);
  });

  test("G1 a stale token is told so even when its condition would fail as well", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 34, value: {} });
    for (const condition of [
      ["If-Match", '"99"'],
      ["If-Match", '"not-ours"'],
      ["If-None-Match", "*"],
    ]) {
      expect(await put(url, name, { token: 33, value: {}, headers: condition })).toMatchObject(stale);
      expect(await put(url, name, { token: 34, value: {}, headers: condition })).toMatchObject({
        status: 412,
        json: { code: "etag_mismatch", currentETag: '"1"' },
      });
    }
  });

  test("G1 a refused write with a higher token does not raise the fence", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await put(url, name, { token: 34, value: {} });
    expect(await put(url, name, { token: 99, value: {}, headers: ["If-Match", '"7"'] })).toMatchObject({
      status: 412,
      json: { code: "etag_mismatch" },
    });
    expect(await put(url, name, { token: 35, value: {} })).toMatchObject({ status: 200 });
  });

  test("G1 the sequence number of a holder must rise, and begins anew with the next token", async ({ gateway: { url } }) => {
    const name = uniqueName();
    expect(await put(url, name, { token: "34;seq=7", value: { n: 7 } })).toMatchObject({ status: 201 });
    for (const late of ["34;seq=7", "34;seq=6"]) {
      expect(await put(url, name, { token: late, value: {} })).toMatchObject({
        status: 409,
        json: { code: "sequence_out_of_order", currentSeq: 7, currentETag: '"1"' },
        headers: { etag: '"1"' },
      });
    }
    expect(await put(url, name, { token: "34;seq=8", value: { n: 8 } })).toMatchObject({ status: 200 });
    // Neither a write nor a seal without a number sets the sequence back.
    expect(await put(url, name, { token: 34, value: {} })).toMatchObject({ status: 200 });
    expect(await seal(url, name, 34)).toMatchObject({ status: 200 });
    expect(await put(url, name, { token: "34;seq=8", value: {} })).toMatchObject({ status: 409, json: { currentSeq: 8 } });
    expect(await put(url, name, { token: "35;seq=1", value: { n: 1 } })).toMatchObject({ status: 200 });
    expect(await put(url, name, { token: "34;seq=9", value: {} })).toMatchObject(stale);
  });
});

async function expectNewerRemains(url: string, name: string, older: Answer, newer: Answer): Promise<void> {
  expect(newer.status).toBeOneOf([200, 201]);
  if (older.status === 412) expect(older.json).toMatchObject({ code: "fencing_token_stale" });
  else expect(older.json).toMatchObject({ token: 7 });
  expect(await get(url, name)).toMatchObject({ json: { by: 8 }, headers: { "fencing-token": "8" } });
  // Whichever came first, the older holder is refused from now on.
  expect(await put(url, name, { token: 7, value: { by: 7 } })).toMatchObject(stale);
}

describe("races", () => {
  const rounds = 20;
  const older = (url: string, name: string) => put(url, name, { token: 7, value: { by: 7 } });
  const newer = (url: string, name: string) => put(url, name, { token: 8, value: { by: 8 } });

  test("G1 tokens 7 and 8 race, through one gateway or two: 8 remains, in either order", async ({ gateway: first, startGateway }) => {
    const second = await startGateway();
    for (let round = 0; round < 2 * rounds; round++) {
      const [name, url] = [uniqueName("race"), round < rounds ? first.url : second.url];
      if (round % 4 > 1) await put(url, name, { token: 1, value: {} });
      const [one, other] = round % 2 === 0 ? [older(first.url, name), newer(url, name)] : [newer(url, name), older(first.url, name)];
      const answers = await Promise.all([one, other]);
      await expectNewerRemains(url, name, ...((round % 2 === 0 ? answers : answers.toReversed()) as [Answer, Answer]));
    }
  });

  test("G1 many holders at once: the fence never falls, and the highest token's document remains", async ({
    gateway: first,
    startGateway,
  }) => {
    const second = await startGateway();
    const name = uniqueName("race");
    const tokens = Array.from({ length: 200 }, (_, index) => ((index * 73) % 200) + 1);
    const answers = await Promise.all(
      tokens.map((token, index) => put(index % 2 === 0 ? first.url : second.url, name, { token, value: { by: token } })),
    );
    const accepted = answers.filter(({ status }) => status < 300).map(({ json }) => json as { token: number; rev: number });
    const inOrder = accepted.toSorted((a, b) => a.rev - b.rev);
    expect(inOrder.map(({ rev }) => rev)).toEqual(inOrder.map((_, index) => index + 1));
    expect(inOrder.map(({ token }) => token)).toEqual(inOrder.map(({ token }) => token).toSorted((a, b) => a - b));
    expect(await get(first.url, name)).toMatchObject({ json: { by: 200 }, headers: { "fencing-token": "200" } });
  });
});
