// Rows per second through POST /v1/transactions, a hundred operations each.
import { fixed, heading, table, whole } from "../report.js";
import type { Arena } from "./contestants.js";
import { load, type Request } from "./load.js";

const operations = 100;
const connections = 8;
const seconds = 8;

function transactions(connection: number): Request[] {
  return Array.from({ length: 10 }, (_, i) => ({
    method: "POST",
    path: "/v1/transactions",
    headers: { "content-type": "application/json", "fencing-token": "7" },
    body: JSON.stringify({
      operations: Array.from({ length: operations }, (_, j) => ({
        op: "put",
        resource: `lines/${connection}-${i}-${j}`,
        value: { sku: `A-${j}`, count: j },
      })),
    }),
  }));
}

export async function measureTransactions({ gateway }: Arena): Promise<void> {
  heading(`Transactions of ${operations} puts`, `${connections} connections, ${seconds} s, all or nothing, commits on disk`);
  await load({ url: gateway.url, connections, seconds: 2, requestsOf: transactions, expect: "2xx" });
  const { perSecond, p50Ms, p99Ms } = await load({ url: gateway.url, connections, seconds, requestsOf: transactions, expect: "2xx" });
  console.log(
    table(
      [{ title: "rows per s" }, { title: "transactions per s" }, { title: "p50 ms" }, { title: "p99 ms" }],
      [[whole(perSecond * operations), whole(perSecond), fixed(p50Ms, 1), fixed(p99Ms, 1)]],
    ),
  );
}
