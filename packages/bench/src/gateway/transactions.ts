// Transactions of a hundred puts: POST /v1/transactions beside a hand-written server that compares
// the tokens of all rows in one statement.
import type { Contestant } from "../measure/comparison.js";
import type { Context } from "../measure/part.js";
import { type Bench, httpContestant, walColumn } from "./http-contestant.js";
import type { Requests } from "./load-client.js";

const OPERATIONS = 100;
const CONNECTIONS = 8;

const requests: Requests = {
  method: "POST",
  path: "/v1/transactions",
  headers: { "content-type": "application/json", "fencing-token": "7" },
  body: JSON.stringify({
    operations: Array.from({ length: OPERATIONS }, (_, j) => ({
      op: "put",
      resource: `lines/{c}-{i}-${j}`,
      value: { sku: `A-${j}`, count: j },
    })),
  }),
  each: 10,
  expect: [200],
};

export async function measureTransactions(bench: Bench, context: Context): Promise<void> {
  const title = `Transactions of ${OPERATIONS} puts`;
  context.progress.begin(title);
  const contestants: Contestant[] = [];
  for (const key of bench.servers.keys(["unnestFenced", "palisade"])) {
    const contestant = httpContestant(bench, await bench.servers.group(key), { connections: CONNECTIONS, requests });
    contestants.push({ ...contestant, round: async (seconds) => withRows(await contestant.round(seconds)) });
  }
  await context.compare({
    id: "transactions",
    title,
    remark: `${CONNECTIONS} connections, all or nothing, commits on disk; processor times and bytes are of a transaction`,
    effort: context.effort({ rounds: 5, seconds: 0.8 }),
    contestants,
    compared: "perSecond",
    columns: [{ key: "rowsPerSecond", title: "rows per s", digits: 0 }, walColumn],
  });
}

function withRows(round: Awaited<ReturnType<Contestant["round"]>>): Awaited<ReturnType<Contestant["round"]>> {
  const rowsPerSecond = (OPERATIONS * round.operations) / round.seconds;
  return { ...round, figures: { ...round.figures, rowsPerSecond } };
}
