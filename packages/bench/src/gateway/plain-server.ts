// What a team writes by hand, and the gateway is compared with: Express, express.json and pg, one
// unfenced upsert for each request. A program of its own.
import express from "express";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: Number(process.env.POOL_SIZE) });
await pool.query(
  "create table if not exists documents (resource text primary key, value jsonb not null, rev bigint not null default 1) with (fillfactor = 80)",
);

const upsert = {
  name: "upsert",
  text: `insert into documents as stored (resource, value) values ($1, $2)
    on conflict (resource) do update set value = excluded.value, rev = stored.rev + 1 returning rev`,
};

const app = express();
app.disable("x-powered-by");
app.use(express.json());
app.put("/v1/resources/:kind/:id", async (request, response) => {
  const { kind, id } = request.params;
  const { rows } = await pool.query({ ...upsert, values: [`${kind}/${id}`, JSON.stringify(request.body)] });
  const { rev } = rows[0] as { rev: string };
  response.set("ETag", `"${rev}"`).json({ resource: `${kind}/${id}`, rev: Number(rev) });
});
const server = app.listen(Number(process.env.PORT), "127.0.0.1");
process.on("SIGTERM", () => {
  server.close(() => void pool.end());
  server.closeAllConnections();
});
