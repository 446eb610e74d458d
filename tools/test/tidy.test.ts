// Holds this checkout against every rule of tools/tidy.
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readCheckout } from "../tidy/checkout.js";
import { rules } from "../tidy/rules.js";

const checkout = readCheckout(fileURLToPath(new URL("../..", import.meta.url)));

/** Whichever rule is the first to ask for syntax waits until all of it is read. */
const patient = { timeout: 120_000 };

for (const rule of rules) {
  test(`in this checkout ${rule.name}`, patient, () => {
    expect(rule.findings(checkout)).toEqual([]);
  });
}
