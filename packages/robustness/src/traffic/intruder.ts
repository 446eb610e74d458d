// Traffic without a lease. The forger sends well-formed tokens that the lock never issued, far
// above every fence (G4); the careless one sends what is no token (G2). Nothing of it may ever
// change anything.
import { type ClientRequest, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Chance, chanceOf } from "../chance.js";
import { type CallOutcome, Journal, nowMs, successor } from "../history.js";
import { documents } from "./documents.js";
import type { IntruderOrders, Process, Traffic } from "./messages.js";

/** Resources that only intruders name. */
export const intruded = ["untouched/1", "untouched/2"] as const;
const MAX_TOKEN = 999_999_999_999_999;
const TIMEOUT_MS = 1_500;

/** From which a new fleet counts. */
const clockFloor = (): number => Date.now() * 100;

interface Attempt {
  readonly resource: string;
  readonly token?: number;
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

export function intrusion(orders: IntruderOrders, self: Process): Traffic {
  const { intruder, apiKey } = orders;
  const chance = chanceOf(orders.seed, intruder);
  const journal = new Journal(orders.journal);
  const send = (attempt: Omit<Attempt, "resource">): Promise<Reply | undefined> => sent(chance.one(orders.gatewayUrls), apiKey, attempt);
  /** The highest fence seen; at first the clock's. */
  let fence = clockFloor();
  const intrude = async (id: string): Promise<void> => {
    const { resource, token, ...attempt } = draw(chance, intruder, { id, near: fence });
    const kind = intruder === "forger" ? "forged" : "malformed";
    journal.write({ e: "sent", id, at: nowMs(), kind, via: "intruder", resource, ...(token === undefined ? {} : { token }) });
    const reply = await send(attempt);
    fence = Math.max(fence, reply === undefined || reply.status >= 300 ? 0 : reply.fence);
    const outcome = outcomeOf(reply);
    self.count(outcome);
    journal.write({ e: "answered", id, at: nowMs(), outcome, code: reply?.code ?? `status ${reply?.status ?? "none"}` });
  };
  return {
    ready: async () => {},
    work: async () => {
      for (let count = 0; !self.over.aborted; await sleep(chance.between(30, 200))) {
        if (count % 5 === 0) {
          const seen = await send({ method: "GET", path: `/v1/resources/${chance.one(documents)}`, headers: [] });
          fence = Math.max(fence, seen?.fence ?? 0);
        }
        await intrude(`${orders.name}-${++count}`);
      }
    },
    close: async () => journal.close(),
  };
}

/** `near` is a valid token, `id` a name for the attempt. */
function draw(chance: Chance, intruder: IntruderOrders["intruder"], { id, near }: { id: string; near: number }): Attempt {
  const resource = chance.happens(0.2) ? chance.one(intruded) : chance.one(documents);
  const above = chance.one([1_000_000, 1_000_000_000, 1_000_000_000_000, MAX_TOKEN]);
  const far = Math.min(MAX_TOKEN, Math.max(near, clockFloor()) + above);
  const common =
    intruder === "forger"
      ? { resource, token: far, headers: ["Fencing-Token", chance.happens(0.5) ? `${far}` : `${far};seq=1`] }
      : { resource, headers: chance.one(malformedTokens(near)) };
  const value = JSON.stringify(successor(null, id));
  const path = `/v1/resources/${resource}`;
  const how = chance.one(["PUT", "PATCH", "DELETE", "seal", "transaction"] as const);
  if (how === "seal") return { ...common, method: "POST", path: `${path}/seal` };
  if (how !== "transaction") return { ...common, method: how, path, body: how === "DELETE" ? undefined : value };
  const body = `{"operations":[{"op":"put","resource":"${resource}","value":${value}}]}`;
  return { ...common, method: "POST", path: "/v1/transactions", body };
}

/** Headers as names and values, so that a field can come twice. */
function sent(url: string, apiKey: string, { method, path, headers, body }: Omit<Attempt, "resource">): Promise<Reply | undefined> {
  const all = ["Host", "gateway", "Authorization", `Bearer ${apiKey}`, "Content-Type", "application/json", ...headers];
  if (body !== undefined) all.push("Content-Length", String(Buffer.byteLength(body)));
  return new Promise((resolve) => {
    const nothing = (): void => resolve(undefined);
    let asked: ClientRequest;
    try {
      asked = request(`${url}${path}`, { method, headers: all, timeout: TIMEOUT_MS, agent: false });
    } catch {
      return nothing(); // Node itself sends no such header.
    }
    asked.on("error", nothing).on("timeout", () => asked.destroy());
    asked.on("response", async (response) => {
      const chunks = await response.setEncoding("utf8").toArray().catch(nothing);
      if (chunks === undefined) return;
      const code = /"code":"([a-z_]+)"/.exec(chunks.join(""))?.[1];
      resolve({ status: response.statusCode ?? 0, code, fence: Number(response.headers["fencing-token"] ?? 0) });
    });
    asked.end(body);
  });
}

function outcomeOf(reply: Reply | undefined): CallOutcome {
  if (reply !== undefined && reply.status < 300) return "done";
  const isRefused = reply !== undefined && reply.status >= 400 && reply.code !== "outcome_unknown" && reply.code !== "internal";
  return isRefused ? "refused" : "unknown";
}

function malformedTokens(near: number): readonly (readonly string[])[] {
  const around = ["-#", "+#", "0#", "#.0", "#e0", `#, ${near + 1}`, "#;", "#;seq=", "#;seq=0", "#;seq=01", "#;SEQ=1", "#; seq=1"];
  const wrong = [...around, "#;seq=1;seq=2", '"#"', "#n", "# #"].map((form) => form.replaceAll("#", `${near}`));
  const tooLong = ["1000000000000000", "9007199254740993", "999999999999999999999999"];
  const values = [...wrong, ...tooLong, `0x${near.toString(16)}`, "", "0", "NaN", "null", "true", "\u00b2"];
  const twice = ["Fencing-Token", `${near}`, "Fencing-Token", `${near}`];
  const otherNames = [["Fencing_Token", `${near}`] as const, ["X-Fencing-Token", `${near}`] as const];
  return [[], twice, ...otherNames, ...values.map((value) => ["Fencing-Token", value])];
}
