// Rows per second through POST /v1/transactions, a hundred operations each.
import { fixed, heading, table, whole } from "../report.js";
import type { ComparedServers } from "./compared-servers.js";
import { load, type Request } from "./load.js";

const OPERATIONS = 100;
const CONNECTIONS = 8;
const SECONDS = 8;

function transactions(connection: number): Request[] {
  return Array.from({ length: 10 }, (_, i) => ({
    method: "POST",
    path: "/v1/transactions",
    headers: { "content-type": "application/json", "fencing-token": "7" },
    body: JSON.stringify({
      operations: Array.from({ length: OPERATIONS }, (_, j) => ({
        op: "put",
        resource: `lines/${connection}-${i}-${j}`,
        value: { sku: `A-${j}`, count: j },
      })),
    }),
  }));
}

export async function measureTransactions({ gateway }: ComparedServers): Promise<void> {
  heading(`Transactions of ${OPERATIONS} puts`, `${CONNECTIONS} connections, ${SECONDS} s, all or nothing, commits on disk`);
  const plan = { url: gateway.url, connections: CONNECTIONS, requestsOf: transactions, expect: "2xx" } as const;
  await load({ ...plan, seconds: 2 });
  const { perSecond, p50Ms, p99Ms } = await load({ ...plan, seconds: SECONDS });
  console.log(
    table(
      [{ title: "rows per s" }, { title: "transactions per s" }, { title: "p50 ms" }, { title: "p99 ms" }],
      [[whole(perSecond * OPERATIONS), whole(perSecond), fixed(p50Ms, 1), fixed(p99Ms, 1)]],
    ),
  );
}
