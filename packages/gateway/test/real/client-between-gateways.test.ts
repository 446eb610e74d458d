// The client behind a load balancer: a gateway restarts, another one is not there yet, answers are
// compressed on the way.
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { createGatewayClient } from "@palisade/client";
import { returnPort, takePort } from "@palisade/testkit";
import { test as base, describe, expect, uniqueName } from "../support/fixtures.js";

/**
 * Answers with these statuses and a page first; then passes requests on, and weakens entity tags.
 */
const test = base.extend("balancer", async ({ gateway }, { onCleanup }) => {
  const upstream = new URL(gateway.url);
  const pages: number[] = [];
  const server = createServer((incoming, outgoing) => {
    const status = pages.shift();
    if (status !== undefined) {
      incoming.resume();
      outgoing.writeHead(status, { "Content-Type": "text/html" }).end(`<html><body><h1>${status}</h1></body></html>`);
      return;
    }
    const { method, url, headers } = incoming;
    const passed = request({ hostname: upstream.hostname, port: upstream.port, method, path: url, headers }, (answer) => {
      const etag = answer.headers.etag;
      outgoing.writeHead(answer.statusCode ?? 0, { ...answer.headers, ...(etag === undefined ? {} : { etag: `W/${etag}` }) });
      answer.pipe(outgoing);
    });
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onCleanup(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createGatewayClient({ url, retry: { firstPauseMs: 1, longestPauseMs: 5 } });
  return { pages, client };
});

describe("behind a load balancer", () => {
  test("G3 a page with 502, 503 or 504 is waited out where a second try does no harm, and is unknown where it might", async ({
    balancer: { pages, client },
  }) => {
    const name = uniqueName();
    pages.push(502, 503, 504);
    expect(await client.put(name, { n: 1 }, { token: 5, seq: 1 })).toMatchObject({ ok: true, rev: 1 });
    pages.push(503, 504);
    expect(await client.get(name)).toMatchObject({ ok: true, value: { n: 1 } });
    pages.push(502);
    const unsafe = await client.put(name, { n: 2 }, { token: 5 });
    expect(unsafe).toMatchObject({ ok: false, code: "answer_not_understood", status: 502, outcome: "unknown", attempts: 1 });
    pages.push(500);
    expect(await client.get(name)).toMatchObject({ ok: false, code: "answer_not_understood", status: 500, attempts: 1 });
  });

  test("a revision is understood where the entity tag was weakened on the way", async ({ balancer: { client } }) => {
    const name = uniqueName();
    expect(await client.put(name, {}, { token: 5 })).toMatchObject({ ok: true, rev: 1 });
    const put = await client.put(name, {}, { token: 5, ifMatch: 1 });
    expect(put).toMatchObject({ ok: true, rev: 2 });
    expect(await client.get(name, { ifNoneMatch: 2 })).toMatchObject({ ok: true, modified: false, rev: 2 });
  });
});

describe("a gateway that restarts", () => {
  base("is waited for: a call with the client's own defaults outlasts it", async ({ database, startProgram, onTestFinished }) => {
    const port = await takePort();
    onTestFinished(() => returnPort(port));
    const env = { DATABASE_URL: database.url, PORT: String(port) };
    const first = await startProgram(env);
    const client = createGatewayClient({ url: first.url });
    const name = uniqueName();
    expect(await client.put(name, {}, { token: 5, seq: 1 })).toMatchObject({ ok: true });
    expect(await first.stop()).toMatchObject({ code: 0 });
    const written = client.put(name, { n: 2 }, { token: 5, seq: 2 });
    const read = client.get(name);
    await startProgram(env);
    expect(await written).toMatchObject({ ok: true, rev: 2 });
    expect(await read).toMatchObject({ ok: true });
  });

  base("is not waited for longer than was asked", async ({ onTestFinished }) => {
    const port = await takePort();
    onTestFinished(() => returnPort(port));
    const client = createGatewayClient({ url: `http://127.0.0.1:${port}`, retry: { forMs: 100 } });
    expect(await client.get("x")).toMatchObject({ ok: false, code: "connection_failed", outcome: "not_applied" });
  });
});

describe("what an operator asks for", () => {
  test("history, fence and a moved fence come as the gateway tells them", async ({ balancer: { client } }) => {
    const name = uniqueName();
    for (const token of [5, 6, 7]) await client.put(name, { token }, { token });
    await client.seal(name, { token: 8 });
    const page = await client.history(name, { limit: 2 });
    expect(page).toMatchObject({
      ok: true,
      resource: name,
      entries: [
        { rev: 3, token: 7 },
        { rev: 2, token: 6 },
      ],
      nextBefore: 2,
    });
    expect(await client.history(name, { before: 2 })).toMatchObject({ entries: [{ rev: 1, op: "put" }], nextBefore: null });
    expect(await client.fence(name)).toMatchObject({ ok: true, resource: name, token: 8, rev: 3, holder: "anonymous" });
    const change = { action: "raise", token: 20, reason: "drill" } as const;
    expect(await client.changeFence(name, change)).toEqual({ ok: true, resource: name, previousToken: 8, token: 20 });
    expect(await client.changeFence(name, change)).toMatchObject({ ok: false, code: "fence_unchanged", currentToken: 20 });
    expect(await client.put(name, {}, { token: 19 })).toMatchObject({ ok: false, code: "fencing_token_stale" });
    expect(await client.fence(`${name}/none`)).toMatchObject({ ok: false, code: "not_found" });
  });

  test("a list shows what has a document, and the rest when asked", async ({ balancer: { client } }) => {
    const prefix = `${uniqueName()}/`;
    for (const name of ["a", "b", "c"]) await client.put(prefix + name, {}, { token: 5 });
    await client.delete(`${prefix}b`, { token: 5 });
    await client.seal(`${prefix}d`, { token: 5 });
    const names = async (options: object): Promise<unknown> => {
      const page = await client.list({ prefix, ...options });
      return page.ok ? page.items.map(({ resource }) => resource.slice(prefix.length)) : page;
    };
    expect(await names({})).toEqual(["a", "c"]);
    expect(await names({ include: "documents", limit: 1 })).toEqual(["a"]);
    expect(await names({ tombstones: "include" })).toEqual(["a", "b", "c", "d"]);
  });
});
