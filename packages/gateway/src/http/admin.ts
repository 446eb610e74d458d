// The admin port: liveness, readiness, metrics. It needs no credential, so it tells nothing about
// resources or callers.
import express, { type Express } from "express";
import type { Readiness } from "../fenced-store.js";
import { statusOf, success } from "./problem.js";

export interface AdminParts {
  readonly ready: () => Promise<Readiness>;
  readonly metrics: () => Promise<string>;
}

export function createAdminApp(parts: AdminParts): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.get("/live", (_request, response) => {
    response.json({ live: true });
  });
  app.get("/ready", async (_request, response) => {
    const readiness = await parts.ready();
    response.status(readiness.ready ? success.ok : statusOf("unavailable")).json(readiness);
  });
  app.get("/metrics", async (_request, response) => {
    response.type("text/plain; version=0.0.4").send(await parts.metrics());
  });
  return app;
}
