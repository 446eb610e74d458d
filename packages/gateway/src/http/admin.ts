// The admin port: liveness, readiness, metrics. These need no credential, so they tell nothing of
// resources or callers, and however many ask, they take little from those who read and write. The
// operator's page, where it is switched on, asks for a credential.
import express, { type Express } from "express";
import type { Readiness } from "../fenced-store.js";
import { statusOf, success } from "./problem.js";
import { SharedAnswer } from "./shared-answer.js";

/** Probes come every second or so; this is the least time between two answers of a route. */
const MIN_INTERVAL_MS = 250;
/** Open connections of the admin port; further ones are closed at once. */
export const MAX_ADMIN_CONNECTIONS = 256;

export function createAdminApp(parts: {
  readonly ready: () => Promise<Readiness>;
  readonly metrics: () => Promise<string>;
  /** Adds the operator's page. */
  readonly addPage?: ((app: Express) => void) | undefined;
}): Express {
  const live = new SharedAnswer(() => ({ live: true }), MIN_INTERVAL_MS);
  const ready = new SharedAnswer(parts.ready, MIN_INTERVAL_MS);
  const metrics = new SharedAnswer(parts.metrics, MIN_INTERVAL_MS);
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.get("/live", async (_request, response) => {
    response.json(await live.get());
  });
  app.get("/ready", async (_request, response) => {
    const readiness = await ready.get();
    response.status(readiness.ready ? success.ok : statusOf("unavailable")).json(readiness);
  });
  app.get("/metrics", async (_request, response) => {
    response.type("text/plain; version=0.0.4").send(await metrics.get());
  });
  parts.addPage?.(app);
  return app;
}
