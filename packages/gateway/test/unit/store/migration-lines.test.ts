// Each migration after those of the first release decides which older gateways run on its schema:
// left out by mistake, a rolling upgrade would take all of them out of service.
import { describe, expect, test } from "vitest";
import { migrations } from "../../../src/store/migrations.generated.js";

const ON = /^-- Runs with gateways from (\d{4}) on\.$/m;
const NONE = /^-- Runs with no older gateway\.$/m;

describe("the line of a migration", () => {
  test.for(migrations.filter(({ name }) => name >= "0010"))("$name says with which gateways it runs", ({ name, text }) => {
    const from = ON.exec(text)?.[1];
    expect({ decided: (from === undefined) === NONE.test(text), isOlder: (from ?? "") < name.slice(0, 4) }).toEqual({
      decided: true,
      isOlder: true,
    });
  });
});
