// Accounts over HTTP: GET /accounts/7, and POST /accounts/7/deposits with {"amount": 10}.
import { createGatewayClient, GatewayError, withResource } from "@palisade/client";
import { createLocker, LockError } from "@palisade/lock";
import express from "express";

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const client = createGatewayClient({
  url: process.env.GATEWAY_URL ?? "http://127.0.0.1:8080",
  apiKey: process.env.GATEWAY_KEY ?? "palisade-on-this-machine-only",
});

const app = express().use(express.json());

app.get("/accounts/:id", async (request, response) => {
  const account = await client.get(nameOf(request.params.id));
  if (account.ok) response.json(account.value);
  else response.status(account.code === "not_found" ? 404 : 503).json({ error: account.code });
});

app.post("/accounts/:id/deposits", async (request, response) => {
  const amount = request.body?.amount;
  if (!Number.isSafeInteger(amount) || amount < 1) throw new RangeError("amount must be a whole number from 1");
  /** @param {{ balance: number } | null} account */
  const deposit = (account) => ({ balance: (account?.balance ?? 0) + amount });
  const { value } = await withResource(locker, client, nameOf(request.params.id), deposit);
  response.status(201).json(value);
});

// Express takes a function with four parameters for the one that answers errors.
/** @type {express.ErrorRequestHandler} */
const answerError = (error, _request, response, _next) => {
  response.status(statusOf(error)).json({ error: error.code ?? error.message });
};
app.use(answerError);

/** @param {string} id */
function nameOf(id) {
  if (!/^\w{1,64}$/.test(id)) throw new RangeError("an account has a name of letters and digits");
  return `accounts/${id}`;
}

/** @param {Error & { status?: number }} error */
function statusOf(error) {
  if (error instanceof RangeError) return 400;
  if (error instanceof GatewayError) return error.outcome === "unknown" ? 504 : 409; // Stored perhaps; not stored.
  if (error instanceof LockError) return 503; // Nothing was written: try again.
  return error.status ?? 500;
}

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`http://127.0.0.1:${address?.port}`);
});
process.once("SIGTERM", () => server.close(() => locker.close()));
