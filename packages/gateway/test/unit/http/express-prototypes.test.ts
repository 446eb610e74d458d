// The prototypes that make the gateway fast do not show in its answers, so they are checked here.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { expect, test } from "vitest";
import { httpClassesFor } from "../../../src/http/server.js";

test("a request reaches Express with the prototype that Express is about to set, and keeps all that Express gives", async () => {
  const app = express();
  const server = createServer(httpClassesFor(app));
  const before: unknown[] = [];
  server.on("request", (request, response) => {
    before.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response));
    app(request, response);
  });
  app.get("/x", (request, response) => {
    before.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response));
    response.json({ path: request.path, same: request.app === app });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/x`);
  expect(await answer.json()).toEqual({ path: "/x", same: true });
  expect(before).toEqual([app.request, app.response, app.request, app.response]);
  expect([before[0] === before[2], before[1] === before[3]]).toEqual([true, true]);
  await new Promise((resolve) => server.close(resolve));
});
