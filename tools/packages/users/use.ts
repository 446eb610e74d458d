// A user's program in TypeScript: it has to compile, strictly, with each version that is promised.
import { createGatewayClient, type GatewayClient, type PutResult, withResource } from "@palisade/client";
import { createGateway, type Gateway } from "@palisade/gateway";
import { GuardError, guard, type OpenTransaction, withFencedTransaction } from "@palisade/guard";
import { createLocker, type Lease, LockError, type Locker } from "@palisade/lock";

interface Account {
  balance: number;
}

export async function run(nodes: string[]): Promise<number> {
  const gateway: Gateway = createGateway({ databaseUrl: "postgres://127.0.0.1/app", apiKeys: "none" });
  const locker: Locker = createLocker({ nodes });
  const client: GatewayClient = createGatewayClient({ url: gateway.url });
  const lease: Lease = await locker.acquire("accounts/1", { ttlMs: 5_000 });
  const stored: PutResult = await client.put("accounts/1", { balance: 1 }, { lease });
  if (!stored.ok && stored.code === "fencing_token_stale") return stored.currentToken ?? 0;
  try {
    const one = await withResource<Account>(locker, client, "accounts/1", (account) => ({ balance: (account?.balance ?? 0) + 1 }));
    const both = await withResource<[Account, Account]>(locker, client, ["accounts/1", "accounts/2"], ([from, to]) => [
      { balance: (from?.balance ?? 0) - 1 },
      { balance: (to?.balance ?? 0) + 1 },
    ]);
    return one.value.balance + (both.value?.[0]?.balance ?? 0);
  } catch (error) {
    if (error instanceof LockError && error.code === "LOCK_HELD") return 0;
    throw error;
  }
}

/** The guard takes what a driver hands out, and its types name none. */
export async function pay(db: { query(text: string): Promise<unknown> }, tx: OpenTransaction, lease: Lease): Promise<string> {
  await guard(tx, { resource: "accounts/1", token: lease.token });
  try {
    return await withFencedTransaction(db, lease, async (open: typeof db) => String(await open.query("select 1")));
  } catch (error) {
    return error instanceof GuardError ? error.code : "failed";
  }
}
