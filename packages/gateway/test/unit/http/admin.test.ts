// However many probes come at once, they cost a few looks at the database and a few lists of
// metrics, and none of their answers is older than its question.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAdminApp } from "../../../src/http/admin.js";

let server: Server;
let url: string;
const made = { ready: 0, metrics: 0 };
let ready: boolean | Error = true;

beforeAll(async () => {
  const app = createAdminApp({
    ready: async () => {
      made.ready += 1;
      if (ready instanceof Error) throw ready;
      return { ready, checks: [] };
    },
    metrics: async () => {
      made.metrics += 1;
      return `made ${made.metrics}`;
    },
  });
  server = createServer(app).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe("the admin port", () => {
  test("G6 answers two hundred probes at once from a few looks", async () => {
    const ask = async (path: string) => (await fetch(url + path)).status;
    const startedAt = performance.now();
    const statuses = await Promise.all(Array.from({ length: 200 }, (_, index) => ask(["/ready", "/metrics", "/live"][index % 3] ?? "")));
    expect(new Set(statuses)).toEqual(new Set([200]));
    // At most four a second, and one at each end.
    const most = (performance.now() - startedAt) / 250 + 2;
    expect(made.ready).toBeLessThanOrEqual(most);
    expect(made.metrics).toBeLessThanOrEqual(most);
  });

  test("never answers with what was true before the question", async () => {
    for (const now of [false, true, false]) {
      ready = now;
      expect((await fetch(`${url}/ready`)).status).toBe(now ? 200 : 503);
    }
  });

  test("answers after a failure", async () => {
    ready = new Error("on purpose");
    expect((await fetch(`${url}/ready`)).status).toBe(500);
    ready = true;
    expect((await fetch(`${url}/ready`)).status).toBe(200);
    expect(await (await fetch(`${url}/live`)).json()).toEqual({ live: true });
  });
});
