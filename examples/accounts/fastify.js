// Accounts over HTTP: GET /accounts/7, and POST /accounts/7/deposits with {"amount": 10}.
import { createGatewayClient, GatewayError, withResource } from "@palisade/client";
import { createLocker, LockError } from "@palisade/lock";
import Fastify from "fastify";

const nodes = process.env.REDIS_URLS?.split(",") ?? [7001, 7002, 7003, 7004, 7005].map((port) => `redis://127.0.0.1:${port}`);
const locker = createLocker({ nodes });
const client = createGatewayClient({
  url: process.env.GATEWAY_URL ?? "http://127.0.0.1:8080",
  apiKey: process.env.GATEWAY_KEY ?? "palisade-on-this-machine-only",
});

const app = Fastify();
const params = { type: "object", properties: { id: { type: "string", pattern: "^\\w{1,64}$" } } };
const body = { type: "object", required: ["amount"], properties: { amount: { type: "integer", minimum: 1, maximum: 1e12 } } };

app.get("/accounts/:id", { schema: { params } }, async (request, reply) => {
  const account = await client.get(`accounts/${request.params.id}`);
  return account.ok ? account.value : reply.code(account.code === "not_found" ? 404 : 503).send({ error: account.code });
});

app.post("/accounts/:id/deposits", { schema: { params, body } }, async (request, reply) => {
  const { value } = await withResource(locker, client, `accounts/${request.params.id}`, (account) => ({
    balance: (account?.balance ?? 0) + request.body.amount,
  }));
  return reply.code(201).send(value);
});

app.setErrorHandler((error, _request, reply) => {
  reply.code(statusOf(error)).send({ error: error.code ?? error.message });
});

function statusOf(error) {
  if (error instanceof GatewayError) return error.outcome === "unknown" ? 504 : 409; // Stored perhaps; not stored.
  if (error instanceof LockError) return 503; // Nothing was written: try again.
  return error.statusCode ?? 500;
}

app.addHook("onClose", () => locker.close());
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" }));
process.once("SIGTERM", () => app.close());
