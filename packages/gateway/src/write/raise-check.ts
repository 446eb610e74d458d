// Whether a token may raise a fence: one that was never issued changes nothing (G4). Asks the lock's
// nodes once per lease instead of once per write. Its memory only saves questions, and refuses nothing: another gateway or an operator may
// have moved the fence.
import type { Issued, Refused, Token, VerifyToken } from "../fence/verdict.js";

export type RaiseEvent =
  | { readonly kind: "raised"; readonly resource: string; readonly token: Token }
  | { readonly kind: "verified"; readonly resource: string; readonly token: Token; readonly answer: Issued };

interface RaiseCheckParts {
  /** Absent: tokens are trusted. */
  readonly verify: VerifyToken | undefined;
  readonly unreachable: "refuse" | "accept";
  readonly observe: (event: RaiseEvent) => void;
}

/**
 * verified: send it as such. unverified: send it so that it is accepted only where it raises
 * nothing. ask: it would certainly raise, so ask the lock first.
 */
type Verification = "verified" | "unverified" | "ask";

/**
 * fence: the highest token that was stored through this process, or that the lock said it issued.
 * proven: the highest of the latter, 0 for none. Only that one vouches for a token: an operator may
 * have lowered the fence since, and what was accepted while the lock could not be asked may be
 * forged. stored: the fence as last heard from the database, 0 where it was not.
 */
interface Remembered {
  readonly fence: Token;
  readonly proven: Token;
  readonly stored: Token;
}

const nothing: Remembered = { fence: 0, proven: 0, stored: 0 };

/**
 * About 200 bytes each with a short name: 2 MB in all, which a busy gateway reaches after its first
 * 10 000 resources.
 */
const MAX_REMEMBERED = 10_000;

export class RaiseCheck {
  readonly #parts: RaiseCheckParts;
  /** Per resource. The oldest are forgotten. */
  readonly #known = new Map<string, Remembered>();
  readonly #asking = new Map<string, Promise<Issued>>();

  constructor(parts: RaiseCheckParts) {
    this.#parts = parts;
  }

  verificationOf(resource: string, token: Token): Verification {
    if (this.#parts.verify === undefined) return "verified";
    const known = this.#known.get(resource);
    if (known === undefined) return "unverified";
    if (token <= known.proven) return "verified";
    // A fence known to be lower saves the statement that would only find that out.
    return token <= known.fence ? "unverified" : "ask";
  }

  /**
   * Whether the lock was asked about it or it was stored before, so that it most likely has a row: a write
   * after the question may have been refused.
   */
  knows(resource: string): boolean {
    return this.#known.has(resource);
  }

  /** Whether it has a row whose fence stands at this token, as last heard. */
  isStored(resource: string, token: Token): boolean {
    return this.#known.get(resource)?.stored === token;
  }

  /** One question at a time per resource and token, however many writes wait for it. */
  async ask(resource: string, token: Token): Promise<"verified" | "unissued" | "unreachable"> {
    if ((this.#known.get(resource)?.proven ?? 0) >= token) return "verified"; // Learned while the write was under way.
    const question = `${token} ${resource}`;
    const asking = this.#asking.get(question) ?? this.#askNodes(resource, token).finally(() => this.#asking.delete(question));
    this.#asking.set(question, asking);
    const answer = await asking;
    if (answer === "issued") return "verified";
    return answer === "unreachable" && this.#parts.unreachable === "accept" ? "verified" : answer;
  }

  async #askNodes(resource: string, token: Token): Promise<Issued> {
    let answer: Issued = "unreachable";
    try {
      answer = (await this.#parts.verify?.(resource, token)) ?? "issued";
    } catch {
      // A throw counts as unreachable and is reported below.
    }
    if (answer === "issued") this.#remember(resource, { fence: token, proven: token });
    this.#parts.observe({ kind: "verified", resource, token, answer });
    return answer;
  }

  /**
   * A write or seal of this token was accepted. Reports a raise when this process knew a lower
   * fence, or had to ask.
   */
  accepted(resource: string, token: Token, asked: "asked" | "not asked"): void {
    const known = this.#known.get(resource);
    if (asked === "asked" || (known !== undefined && known.fence < token)) this.#parts.observe({ kind: "raised", resource, token });
    this.#remember(resource, { fence: token, stored: token });
  }

  refused(refusals: readonly { readonly refusal: Refused }[]): void {
    for (const { refusal } of refusals) {
      if (refusal.kind !== "stale" || refusal.currentToken === undefined) continue;
      const { resource, currentToken: stored } = refusal;
      this.#remember(resource, { fence: stored, stored });
    }
  }

  #remember(resource: string, heard: Partial<Remembered>): void {
    const known = this.#known.get(resource) ?? nothing;
    const { fence = 0, proven = 0, stored = known.stored } = heard;
    if (known.fence === fence && known.proven >= proven && known.stored === stored) return;
    this.#known.delete(resource);
    this.#known.set(resource, { fence: Math.max(known.fence, fence), proven: Math.max(known.proven, proven), stored });
    if (this.#known.size <= MAX_REMEMBERED) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}
