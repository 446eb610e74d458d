// The end of a gateway: what was accepted is answered, and nothing is begun that cannot be.
import { Agent, request } from "node:http";
import pg from "pg";
import { describe, eventually, expect, type GatewayProcess, test, uniqueName } from "../support/fixtures.js";
import { untilSomebodyWaits } from "../support/sql.js";
import { type Answer, get, put, RawConnection } from "../support/wire.js";

/** A write that waits in the database until the test lets it go. */
async function heldWrite(
  gateway: GatewayProcess,
  databaseUrl: string,
): Promise<{ readonly name: string; readonly answer: Promise<Answer>; readonly release: () => Promise<void> }> {
  const name = uniqueName();
  await put(gateway.url, name, { token: 1, value: {} });
  const client = new pg.Client(databaseUrl);
  client.on("error", () => undefined); // Only after the test has failed, while its database is dropped.
  await client.connect();
  await client.query("begin");
  await client.query("select 1 from palisade.resources where resource = $1 for update", [name]);
  const answer = put(gateway.url, name, { token: 2, value: { by: 2 } });
  answer.catch(() => undefined); // Some tests end it with the process.
  await untilSomebodyWaits(client);
  const release = async (): Promise<void> => {
    await client.query("commit");
    await client.end();
  };
  return { name, answer, release };
}

const patient = { PALISADE_WRITE_TIMEOUT_MS: "600000", PALISADE_DRAIN_MS: "30000" };

/** Sends writes on one connection until the gateway is gone; `outcomes` tells how each ended. */
async function keepWriting(url: string, thinkMs: number, outcomes: string[]): Promise<readonly string[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const { hostname, port } = new URL(url);
  const name = uniqueName();
  const headers = { "Content-Type": "application/json", "Fencing-Token": "1" };
  const write = () =>
    new Promise<string>((resolve) => {
      const outgoing = request({ agent, hostname, port, method: "PUT", path: `/v1/resources/${name}`, headers });
      outgoing.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      outgoing.on("response", (incoming) => {
        incoming.resume().on("end", () => resolve(`${incoming.statusCode} ${incoming.headers.connection}`));
      });
      outgoing.end("{}");
    });
  while (outcomes.at(-1) !== "ECONNREFUSED" && outcomes.length < 100_000) {
    outcomes.push(await write());
    if (thinkMs > 0) await new Promise((resolve) => setTimeout(resolve, thinkMs));
  }
  agent.destroy();
  return outcomes;
}

describe("SIGTERM", () => {
  test("G3 resets no connection of 64 clients: each is told to close it, and then meets a closed port", async ({
    database,
    gateway: reader,
    startProgram,
  }) => {
    const gateway = await startProgram({
      DATABASE_URL: database.url,
      ...patient,
      PALISADE_UNREADY_MS: "200",
      PALISADE_DRAIN_MS: "300000",
    });
    const pipelined = new RawConnection(gateway.url);
    const outcomesOf = Array.from({ length: 64 }, (): string[] => []);
    const clients = outcomesOf.map((outcomes, index) => keepWriting(gateway.url, index % 4 === 0 ? 20 * (index % 9) : 0, outcomes));
    // All are connected: the kernel resets what it has not handed to the gateway yet.
    await eventually(async () => outcomesOf.every((outcomes) => outcomes.length > 0)).toBe(true);
    await eventually(
      async () => (await (await fetch(`${gateway.adminUrl}/metrics`)).text()).match(/route="put",outcome="ok"} (\d+)/)?.[1],
    ).toMatch(/\d{3}/);
    gateway.child.signal("SIGTERM");
    await eventually(async () => (await fetch(`${gateway.adminUrl}/ready`)).status).toBe(503);
    const all = await Promise.all(clients);
    for (const outcomes of all) {
      expect(outcomes.slice(-2)).toEqual([expect.stringMatching(/^20[01] close$/), "ECONNREFUSED"]);
      for (const outcome of outcomes.slice(0, -2)) expect(outcome).toMatch(/^20[01] keep-alive$/);
    }
    // Of two requests in one packet the second could not be answered, so it is not begun.
    const [first, second] = [uniqueName(), uniqueName()];
    const put = (name: string): string =>
      `PUT /v1/resources/${name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nFencing-Token: 5\r\nContent-Length: 2\r\n\r\n{}`;
    pipelined.send(put(first) + put(second));
    await pipelined.closed;
    expect(pipelined.received).toMatch(/^HTTP\/1.1 201 /);
    expect(await get(reader.url, first)).toMatchObject({ status: 200 });
    expect(await get(reader.url, second)).toMatchObject({ status: 404 });
    expect(await gateway.child.waitForExit()).toEqual({ code: 0, signal: null });
  });

  test("G3 lets it finish what it accepted, refuse what comes after, and exit 0", async ({ database, gateway: reader, startProgram }) => {
    const gateway = await startProgram({ DATABASE_URL: database.url, ...patient });
    const idle = new RawConnection(gateway.url);
    const half = new RawConnection(gateway.url);
    half.send(
      `PUT /v1/resources/${uniqueName()} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nFencing-Token: 5\r\nContent-Length: 2\r\n\r\n`,
    );
    const held = await heldWrite(gateway, database.url);
    gateway.child.signal("SIGTERM");
    await idle.closed;
    await expect(put(gateway.url, uniqueName(), { token: 1, value: {} })).rejects.toThrow(/ECONNREFUSED/);
    expect(await (await fetch(`${gateway.adminUrl}/ready`)).json()).toMatchObject({ ready: false });
    half.send("{}"); // Its header was accepted before the signal, so it is finished.
    await half.closed;
    expect(half.received).toMatch(/HTTP\/1\.1 201 /);
    await held.release();
    expect(await held.answer).toMatchObject({ status: 200, headers: { connection: "close" } });
    expect(await gateway.child.waitForExit()).toEqual({ code: 0, signal: null });
    expect(await get(reader.url, held.name)).toMatchObject({ json: { by: 2 } });
  });

  test("twice ends the process at once", async ({ database, startProgram }) => {
    const gateway = await startProgram({ DATABASE_URL: database.url, ...patient });
    const held = await heldWrite(gateway, database.url);
    gateway.child.signal("SIGTERM");
    await eventually(async () => (await fetch(`${gateway.adminUrl}/ready`)).text()).toContain('"shutdown"'); // Two signals before the first is handled count as one.
    gateway.child.signal("SIGTERM");
    expect(await gateway.child.waitForExit()).toEqual({ code: 143, signal: null });
    await expect(held.answer).rejects.toThrow();
    await held.release();
  });

  test("waits no longer than PALISADE_DRAIN_MS, and exits with 1 when requests were left", async ({ database, startProgram }) => {
    const gateway = await startProgram({ DATABASE_URL: database.url, ...patient, PALISADE_DRAIN_MS: "200" });
    const held = await heldWrite(gateway, database.url);
    gateway.child.signal("SIGTERM");
    expect(await gateway.child.waitForExit()).toEqual({ code: 1, signal: null });
    await held.release();
  });
});

test("close() of an embedded gateway is idempotent and answers what was accepted", async ({ startGateway }) => {
  const gateway = await startGateway();
  const writes = Array.from({ length: 50 }, () => put(gateway.url, uniqueName(), { token: 1, value: {} }));
  await Promise.race(writes);
  const [first, second] = await Promise.all([gateway.close(), gateway.close()]);
  expect([first, second]).toEqual([{ unfinished: 0 }, { unfinished: 0 }]);
  for (const outcome of await Promise.allSettled(writes)) {
    if (outcome.status === "fulfilled") expect(outcome.value.status).toBeOneOf([201, 503]);
  }
});

test("G3 an answer that was begun before the end of a gateway is sent whole", async ({ startGateway, connect }) => {
  const gateway = await startGateway({ drainMs: 60_000 });
  const name = uniqueName();
  await put(gateway.url, name, { token: 1, value: {} });
  await (await connect()).query("update palisade.resources set value = to_jsonb(repeat('x', 8000000)) where resource = $1", [name]);
  const [idle, slow] = [new RawConnection(gateway.url), new RawConnection(gateway.url)];
  slow.send(`GET /v1/resources/${name} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await slow.receives(/200 OK/);
  slow.socket.pause();
  const closed = gateway.close();
  await idle.closed;
  slow.socket.resume();
  await slow.closed;
  expect(slow.received.length).toBeGreaterThan(8_000_000);
  expect(await closed).toEqual({ unfinished: 0 });
});
