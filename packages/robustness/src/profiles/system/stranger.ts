// Who has no lease and tries all the same, a program of its own. The forger sends well-formed tokens that the lock never issued, far above every fence (G4); the careless
// sends what is no token (G2). Neither ever gets to change anything, or the run has found something.
import { type ClientRequest, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { chanceOf } from "../../harness/chance.js";
import { nowMs } from "../../history/lease-record.js";
import { successor } from "./document.js";
import { Journal, type Outcome } from "./journal.js";
import { notTokens } from "./not-tokens.js";
import { documents, type FromActor, type StrangerOrders, type ToActor, untouched } from "./words.js";

const orders = JSON.parse(process.argv[2] ?? "") as StrangerOrders;
const { trade } = orders;
const chance = chanceOf(orders.seed, trade);
const journal = new Journal(orders.journal);
const MAX_TOKEN = 999_999_999_999_999;
const TIMEOUT_MS = 1_500;
const tellEveryMs = 500;

let working = true;
let count = 0;
let tally = { done: 0, refused: 0, unknown: 0, overwrote: 0 };
/** The highest fence it has seen, and at least the milliseconds from which a new fleet counts: what is below that may count as issued, and does no harm. */
let fence = Date.now();

function say(word: FromActor): void {
  process.send?.(word);
}

interface Attempt {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly body: string | undefined;
}

interface Reply {
  readonly status: number;
  readonly code: string | undefined;
  readonly fence: number;
}

function send({ method, path, headers, body }: Attempt): Promise<Reply | undefined> {
  return new Promise((resolve) => {
    const nothing = (): void => resolve(undefined);
    let asked: ClientRequest;
    const all = ["Host", "gateway", "Authorization", `Bearer ${orders.apiKey}`, "Content-Type", "application/json", ...headers];
    if (body !== undefined) all.push("Content-Length", String(Buffer.byteLength(body)));
    try {
      asked = request(`${chance.one(orders.gatewayUrls)}${path}`, { method, headers: all, timeout: TIMEOUT_MS, agent: false });
    } catch {
      return nothing(); // Node itself sends no such header.
    }
    asked.on("error", nothing).on("timeout", () => asked.destroy());
    asked.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("error", nothing).on("end", () => {
        const code = /"code":"([a-z_]+)"/.exec(text)?.[1];
        resolve({ status: response.statusCode ?? 0, code, fence: Number(response.headers["fencing-token"] ?? 0) });
      });
    });
    asked.end(body);
  });
}

function attempt(id: string): Attempt & { readonly resource: string; readonly token?: number } {
  const resource = chance.happens(0.2) ? chance.one(untouched) : chance.one(documents);
  const far = Math.min(MAX_TOKEN, Math.max(fence, Date.now()) + chance.one([1_000_000, 1_000_000_000, 1_000_000_000_000, MAX_TOKEN]));
  const token = trade === "forger" ? { token: far } : {};
  const header = trade === "forger" ? ["Fencing-Token", chance.happens(0.5) ? `${far}` : `${far};seq=1`] : chance.one(notTokens(fence));
  const value = JSON.stringify(successor(null, id));
  const path = `/v1/resources/${resource}`;
  const how = chance.one(["PUT", "PATCH", "DELETE", "seal", "transaction"] as const);
  const common = { resource, headers: header, ...token };
  if (how === "seal") return { ...common, method: "POST", path: `${path}/seal`, body: undefined };
  if (how !== "transaction") return { ...common, method: how, path, body: how === "DELETE" ? undefined : value };
  const body = `{"operations":[{"op":"put","resource":"${resource}","value":${value}}]}`;
  return { ...common, method: "POST", path: "/v1/transactions", body };
}

async function tryOnce(): Promise<void> {
  const id = `${trade}-${++count}`;
  const { resource, token, ...wire } = attempt(id);
  const kind = trade === "forger" ? "forged" : "malformed";
  journal.write({ e: "sent", id, at: nowMs(), kind, via: "stranger", resource, ...(token === undefined ? {} : { token }) });
  const reply = await send(wire);
  fence = Math.max(fence, reply === undefined || reply.status >= 300 ? 0 : reply.fence);
  const isRefused = reply !== undefined && reply.status >= 400 && reply.code !== "outcome_unknown" && reply.code !== "internal";
  const outcome: Outcome = reply !== undefined && reply.status < 300 ? "done" : isRefused ? "refused" : "unknown";
  tally[outcome]++;
  journal.write({ e: "answered", id, at: nowMs(), outcome, code: reply?.code ?? `status ${reply?.status ?? "none"}` });
}

/** Where the fences are now, as anybody may know who may read. */
async function look(): Promise<void> {
  const reply = await send({ method: "GET", path: `/v1/resources/${chance.one(documents)}`, headers: [], body: undefined });
  fence = Math.max(fence, reply?.fence ?? 0);
}

async function work(): Promise<void> {
  const teller = setInterval(() => {
    say({ kind: "tally", ...tally });
    tally = { done: 0, refused: 0, unknown: 0, overwrote: 0 };
  }, tellEveryMs);
  for (; working; await sleep(chance.between(30, 200))) {
    if (count % 5 === 0) await look();
    await tryOnce();
  }
  clearInterval(teller);
  say({ kind: "done" });
}

process.on("message", (word: ToActor) => {
  if (word.kind === "go") void work();
  else if (word.kind === "finish") working = false;
  else {
    journal.close();
    process.disconnect();
  }
});
process.on("disconnect", () => process.exit());
say({ kind: "ready" });
