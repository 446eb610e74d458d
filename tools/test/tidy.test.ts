// Holds this checkout against every rule of tools/tidy.
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readCheckout } from "../tidy/checkout.js";
import { rules } from "../tidy/rules.js";

const checkout = readCheckout(fileURLToPath(new URL("../..", import.meta.url)));

for (const rule of rules) {
  test(`in this checkout ${rule.name}`, () => {
    expect(rule.findings(checkout)).toEqual([]);
  });
}
