// Accounts over HTTP: GET /accounts/7, POST /accounts/7/deposits with {"amount": 10}, and
// POST /transfers with {"from": "7", "to": "8", "amount": 10}.
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

/** @typedef {{ balance: number }} Account */

app.post("/accounts/:id/deposits", async (request, response) => {
  const amount = amountIn(request.body);
  /** @param {Account | null} account */
  const deposit = (account) => ({ balance: (account?.balance ?? 0) + amount });
  const { value } = await withResource(locker, client, nameOf(request.params.id), deposit);
  response.status(201).json(value);
});

app.post("/transfers", async (request, response) => {
  const amount = amountIn(request.body);
  const names = [nameOf(request.body.from), nameOf(request.body.to)];
  /** @type {(accounts: readonly (Account | null)[]) => [Account, Account]} */
  const move = ([source, target]) => {
    const balance = source?.balance ?? 0;
    if (balance < amount) throw new RangeError(`${names[0]} has only ${balance}`); // Nothing is stored.
    return [{ balance: balance - amount }, { balance: (target?.balance ?? 0) + amount }];
  };
  const { value } = await withResource(locker, client, names, move);
  response.status(201).json(value);
});

// Express takes a function with four parameters for the one that answers errors.
/** @type {express.ErrorRequestHandler} */
const answerError = (error, _request, response, _next) => {
  response.status(statusOf(error)).json({ error: error.code ?? error.message });
};
app.use(answerError);

/** @param {{ amount?: number } | undefined} body */
function amountIn(body) {
  const amount = body?.amount ?? 0;
  if (!Number.isSafeInteger(amount) || amount < 1) throw new RangeError("amount must be a whole number from 1");
  return amount;
}

/** @param {unknown} id */
function nameOf(id) {
  if (typeof id !== "string" || !/^\w{1,64}$/.test(id)) throw new RangeError("an account has a name of letters and digits");
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
