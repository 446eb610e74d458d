// Sends writes and transactions to their paths. One whose token would raise a fence and is not known
// to be issued comes back unverified: then the lock is asked, and it is sent again.
import type { Token, TransactionRequest, TransactionVerdict, Verdict, WriteRequest } from "../fence/verdict.js";
import type { RaiseCheck } from "./raise-check.js";
import type { WritePaths } from "./write-paths.js";

export class VerifiedWrites {
  readonly #paths: WritePaths;
  readonly #raises: RaiseCheck;

  constructor(paths: WritePaths, raises: RaiseCheck) {
    this.#paths = paths;
    this.#raises = raises;
  }

  async write(request: WriteRequest): Promise<Verdict> {
    const verdict = await this.#decide(request);
    if (verdict.kind === "stale") this.#raises.refused([{ refusal: verdict }]);
    return verdict;
  }

  async #decide(request: WriteRequest): Promise<Verdict> {
    const { resource, token } = request;
    const { commit } = this.#paths.pathOf([resource]);
    const verification = this.#raises.verificationOf(resource, token);
    if (verification !== "ask") {
      const verdict = await commit.submit(request, { verified: verification === "verified", known: this.#raises.knows(resource) });
      if (verdict.kind === "accepted") this.#raises.accepted(resource, token, "not asked");
      if (verdict.kind !== "unverified") return verdict;
    }
    const refusal = await this.#verifyRaise(resource, token);
    if (refusal !== undefined) return refusal;
    // Asked at once: it was met before. One that came back unverified may have no row.
    const verdict = await commit.submit(request, { verified: true, known: verification === "ask" });
    if (verdict.kind === "unverified") throw new Error("invariant: a verified write was taken for an unverified one");
    if (verdict.kind === "accepted") this.#raises.accepted(resource, token, "asked");
    return verdict;
  }

  async #verifyRaise(
    resource: string,
    token: Token,
  ): Promise<(Verdict & { readonly kind: "token_unissued" | "verification_unavailable" }) | undefined> {
    const answer = await this.#raises.ask(resource, token);
    if (answer === "verified") return undefined;
    return { kind: answer === "unissued" ? "token_unissued" : "verification_unavailable", resource, presentedToken: token };
  }

  async transaction(request: TransactionRequest): Promise<TransactionVerdict> {
    const { operations } = request;
    const { transactions } = this.#paths.pathOf(operations.map(({ resource }) => resource));
    const asked = new Set<WriteRequest>();
    let toAsk = operations.filter(({ resource, token }) => this.#raises.verificationOf(resource, token) === "ask");
    for (;;) {
      const refused = await this.#verifyAll(toAsk, operations);
      if (refused.length > 0) return { kind: "refused", refusals: refused };
      for (const operation of toAsk) asked.add(operation);
      const isVerified = (operation: WriteRequest) =>
        asked.has(operation) || this.#raises.verificationOf(operation.resource, operation.token) === "verified";
      const isStored = ({ resource, token }: WriteRequest) => this.#raises.isStored(resource, token);
      const verdict = await transactions.run(request, { isVerified, isStored });
      if (verdict.kind === "unverified") {
        toAsk = [...verdict.operations];
        continue;
      }
      if (verdict.kind === "committed")
        for (const operation of operations)
          this.#raises.accepted(operation.resource, operation.token, asked.has(operation) ? "asked" : "not asked");
      if (verdict.kind === "refused") this.#raises.refused(verdict.refusals);
      return verdict;
    }
  }

  async #verifyAll(toAsk: readonly WriteRequest[], operations: readonly WriteRequest[]) {
    const answers = await Promise.all(
      toAsk.map(async (operation) => ({ operation, refusal: await this.#verifyRaise(operation.resource, operation.token) })),
    );
    return answers.flatMap(({ operation, refusal }) => (refusal === undefined ? [] : [{ index: operations.indexOf(operation), refusal }]));
  }
}
