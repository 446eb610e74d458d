// Moves a fence by hand, up or down, with an audit row in the same statement. For operators only:
// after a fence is lowered, the tokens it refused are accepted again (G1).
import { undecidedBy } from "../fence/failure.js";
import {
  type Contention,
  checkName,
  checkText,
  checkToken,
  MAX_NAME_BYTES,
  type OutcomeUnknown,
  type Token,
  type Unavailable,
  unavailable,
} from "../fence/verdict.js";
import { type Durability, durabilityDemand } from "./session.js";
import { type Held, type Line, LOCK_TIMED_OUT } from "./slots.js";

/** Kept for ever: which credential moved the fence, and why. */
export type FenceChange = { readonly resource: string; readonly token: Token; readonly by: string; readonly reason: string };
export type FenceVerdict =
  | { readonly kind: "changed"; readonly resource: string; readonly previousToken: Token | null; readonly token: Token }
  /** raise to no more than the stored fence, or lower to no less than it: nothing changed. */
  | { readonly kind: "unchanged"; readonly resource: string; readonly currentToken: Token | null }
  | Unavailable
  | OutcomeUnknown
  | Contention;

/** No row when the transaction would not be as durable as demanded: then nothing was called. */
const textFor = (durability: Durability): string =>
  `select changed, previous from palisade.move_fence($1, $2, $3::bigint, $4, $5) where ${durabilityDemand[durability]}`;

export async function moveFence(
  line: Line,
  durability: Durability,
  { direction, resource, token, by, reason }: FenceChange & { readonly direction: "raise" | "lower" },
): Promise<FenceVerdict> {
  checkName(resource);
  checkToken(token);
  checkText({ text: by, what: "who moves a fence", maxBytes: MAX_NAME_BYTES });
  checkText({ text: reason, what: "the reason to move a fence", maxBytes: 4_096 });
  const statement = { name: "", text: textFor(durability), values: [direction, resource, String(token), by, reason] };
  const verdict = await line.use([resource], async (connection): Promise<FenceVerdict | Held> => {
    const reply = await connection.transaction("palisade-move-fence", (run) => run(statement));
    if ("failure" in reply) {
      const { failure } = reply;
      if (failure.kind === "unknown" || failure.kind === "unavailable") return undecidedBy(failure);
      return failure.code === LOCK_TIMED_OUT ? { kind: "held", rows: [resource] } : { kind: "contention", resource, code: failure.code };
    }
    if (reply.rows[0] === undefined) return unavailable("not_durable");
    const [changed, previous] = reply.rows[0];
    const previousToken = typeof previous === "number" ? previous : null;
    return changed === true
      ? { kind: "changed", resource, previousToken, token }
      : { kind: "unchanged", resource, currentToken: previousToken };
  });
  return verdict.kind === "held" ? { kind: "contention", resource, code: LOCK_TIMED_OUT } : verdict;
}
