// Traffic without a lease. The forger sends well-formed tokens that the lock never issued, far
// above every fence (G4); the careless one sends what is no token (G2). Nothing of it may ever
// change anything.
import { type ClientRequest, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Journal } from "../history/history.js";
import { type CallOutcome, nowMs, successor } from "../history/records.js";
import { type Chance, chanceOf } from "./chance.js";
import { type FromWorker, type IntruderOrders, noTally, type Traffic } from "./messages.js";
import { documents } from "./read-modify-write.js";

/** Resources that only intruders name. */
export const intruded = ["untouched/1", "untouched/2"] as const;
const MAX_TOKEN = 999_999_999_999_999;
const TIMEOUT_MS = 1_500;

/** From which a new fleet counts. */
const clockFloor = (): number => Date.now() * 100;

interface Attempt {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly body?: string | undefined;
}

interface Reply {
  readonly status: number;
  readonly code: string | undefined;
  readonly fence: number;
}

export class Intruder implements Traffic {
  readonly #orders: IntruderOrders;
  readonly #chance: Chance;
  readonly #journal: Journal;
  #isFinishing = false;
  #count = 0;
  #tally = { ...noTally };
  /** The highest fence seen; at first the clock's. */
  #fence = clockFloor();

  constructor(orders: IntruderOrders) {
    this.#orders = orders;
    this.#chance = chanceOf(orders.seed, orders.intruder);
    this.#journal = new Journal(orders.journal);
  }

  async ready(): Promise<void> {}

  async work(): Promise<void> {
    for (; !this.#isFinishing; await sleep(this.#chance.between(30, 200))) {
      if (this.#count % 5 === 0) await this.#readFence();
      await this.#intrude();
    }
  }

  finish(): void {
    this.#isFinishing = true;
  }

  report(): FromWorker {
    const tally = this.#tally;
    this.#tally = { ...noTally };
    return { kind: "tally", tally };
  }

  async close(): Promise<void> {
    this.#journal.close();
  }

  async #intrude(): Promise<void> {
    const { intruder } = this.#orders;
    const id = `${intruder}-${++this.#count}`;
    const { resource, token, ...attempt } = this.#draw(id);
    const kind = intruder === "forger" ? "forged" : "malformed";
    this.#journal.write({ e: "sent", id, at: nowMs(), kind, via: "intruder", resource, ...(token === undefined ? {} : { token }) });
    const reply = await this.#send(attempt);
    this.#fence = Math.max(this.#fence, reply === undefined || reply.status >= 300 ? 0 : reply.fence);
    const outcome = outcomeOf(reply);
    this.#tally[outcome]++;
    this.#journal.write({ e: "answered", id, at: nowMs(), outcome, code: reply?.code ?? `status ${reply?.status ?? "none"}` });
  }

  #draw(id: string): Attempt & { readonly resource: string; readonly token?: number } {
    const chance = this.#chance;
    const resource = chance.happens(0.2) ? chance.one(intruded) : chance.one(documents);
    const above = chance.one([1_000_000, 1_000_000_000, 1_000_000_000_000, MAX_TOKEN]);
    const far = Math.min(MAX_TOKEN, Math.max(this.#fence, clockFloor()) + above);
    const common =
      this.#orders.intruder === "forger"
        ? { resource, token: far, headers: ["Fencing-Token", chance.happens(0.5) ? `${far}` : `${far};seq=1`] }
        : { resource, headers: chance.one(malformedTokens(this.#fence)) };
    const value = JSON.stringify(successor(null, id));
    const path = `/v1/resources/${resource}`;
    const how = chance.one(["PUT", "PATCH", "DELETE", "seal", "transaction"] as const);
    if (how === "seal") return { ...common, method: "POST", path: `${path}/seal` };
    if (how !== "transaction") return { ...common, method: how, path, body: how === "DELETE" ? undefined : value };
    const body = `{"operations":[{"op":"put","resource":"${resource}","value":${value}}]}`;
    return { ...common, method: "POST", path: "/v1/transactions", body };
  }

  async #readFence(): Promise<void> {
    const reply = await this.#send({ method: "GET", path: `/v1/resources/${this.#chance.one(documents)}`, headers: [] });
    this.#fence = Math.max(this.#fence, reply?.fence ?? 0);
  }

  #send({ method, path, headers, body }: Attempt): Promise<Reply | undefined> {
    const { apiKey, gatewayUrls } = this.#orders;
    const all = ["Host", "gateway", "Authorization", `Bearer ${apiKey}`, "Content-Type", "application/json", ...headers];
    if (body !== undefined) all.push("Content-Length", String(Buffer.byteLength(body)));
    return new Promise((resolve) => {
      const nothing = (): void => resolve(undefined);
      let sent: ClientRequest;
      try {
        sent = request(`${this.#chance.one(gatewayUrls)}${path}`, { method, headers: all, timeout: TIMEOUT_MS, agent: false });
      } catch {
        return nothing(); // Node itself sends no such header.
      }
      sent.on("error", nothing).on("timeout", () => sent.destroy());
      sent.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("error", nothing).on("end", () => {
          const code = /"code":"([a-z_]+)"/.exec(text)?.[1];
          resolve({ status: response.statusCode ?? 0, code, fence: Number(response.headers["fencing-token"] ?? 0) });
        });
      });
      sent.end(body);
    });
  }
}

function outcomeOf(reply: Reply | undefined): CallOutcome {
  if (reply !== undefined && reply.status < 300) return "done";
  const isRefused = reply !== undefined && reply.status >= 400 && reply.code !== "outcome_unknown" && reply.code !== "internal";
  return isRefused ? "refused" : "unknown";
}

/** Names and values as sent, so that a field can come twice. `near` is a valid token. */
function malformedTokens(near: number): readonly (readonly string[])[] {
  const values = [
    "",
    "0",
    `-${near}`,
    `+${near}`,
    `0${near}`,
    `${near}.0`,
    `${near}e0`,
    `0x${near.toString(16)}`,
    `${near}, ${near + 1}`,
    `${near};`,
    `${near};seq=`,
    `${near};seq=0`,
    `${near};seq=01`,
    `${near};SEQ=1`,
    `${near}; seq=1`,
    `${near};seq=1;seq=2`,
    `"${near}"`,
    `${near}n`,
    `${near} ${near}`,
    "1000000000000000",
    "9007199254740993",
    "999999999999999999999999",
    "NaN",
    "null",
    "true",
    "\u00b2",
  ];
  const twice = ["Fencing-Token", String(near), "Fencing-Token", String(near)];
  const otherName = ["Fencing_Token", String(near)];
  return [[], twice, otherName, ["X-Fencing-Token", String(near)], ...values.map((value) => ["Fencing-Token", value])];
}
