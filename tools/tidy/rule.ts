// The shape of a rule and of what it finds. A rule reads a checkout and reports; it never repairs
// and never throws for something it dislikes.
import type { Checkout } from "./checkout.js";

/** "path:line: sentence", ready to be printed and clicked. */
export type Finding = string;

export interface Rule {
  /** A true sentence about a tidy checkout. */
  readonly name: string;
  readonly findings: (checkout: Checkout) => readonly Finding[];
}
