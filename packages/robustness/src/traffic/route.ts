// The routes by which a client's reads and writes reach the store, and the first of them: the
// gateway's own client, which repeats what is safe to repeat.
import type { DeleteResult, GatewayClient, PatchResult, PutResult, Refusal } from "@palisade/client";
import type { Answer, Document, Seen, Via, WriteKind } from "../history/records.js";

export interface ReadAnswer extends Answer {
  /** Present if done. */
  readonly seen?: Seen;
}

export interface Write {
  readonly kind: WriteKind;
  readonly resource: string;
  readonly token: number;
  readonly seq: number;
  /** null for a delete. */
  readonly document: Document | null;
  /** Present where the route may refuse by itself when the lease is over. */
  readonly lease?: { readonly token: number; readonly signal: AbortSignal };
}

export interface Route {
  readonly via: Via;
  /** Raises the fence and reads. */
  seal(resource: string, token: number): Promise<ReadAnswer>;
  get(resource: string): Promise<ReadAnswer>;
  write(write: Write): Promise<Answer>;
}

/** `choose`: a gateway for each call. */
export function gatewayClientRoute(choose: () => GatewayClient): Route {
  return {
    via: "client",
    seal: async (resource, token) => {
      const sealed = await choose().seal<Document>(resource, { token });
      if (!sealed.ok) return refused(sealed);
      return { outcome: "done", rev: sealed.rev, seen: { rev: sealed.rev, document: sealed.value } };
    },
    get: async (resource) => {
      const got = await choose().get<Document>(resource);
      if (!got.ok) return refused(got);
      return { outcome: "done", rev: got.rev, ...(got.modified ? { seen: { rev: got.rev, document: got.value } } : {}) };
    },
    write: async (write) => answerOf(await send(choose(), write)),
  };
}

function send(
  client: GatewayClient,
  { kind, resource, token, seq, document, lease }: Write,
): Promise<PutResult | PatchResult | DeleteResult> {
  const options = lease === undefined ? { token, seq } : { lease, seq };
  if (kind === "delete") return client.delete(resource, options);
  return kind === "put" ? client.put(resource, document, options) : client.patch(resource, document, options);
}

function answerOf(result: PutResult | PatchResult | DeleteResult): Answer {
  return result.ok ? { outcome: "done", rev: result.rev } : refused(result);
}

export function refused({ outcome, code }: Pick<Refusal, "outcome" | "code">): ReadAnswer {
  return { outcome: outcome === "unknown" ? "unknown" : "refused", code };
}
