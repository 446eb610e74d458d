// Each curl example of the README is run, in order.
import { readFileSync } from "node:fs";
import { curl } from "../support/curl.js";
import { describe, expect, test } from "../support/fixtures.js";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const pairs = [...readme.matchAll(/```sh\n(curl [\s\S]*?)```\s+```http\n([\s\S]*?)```/g)].map(([, command = "", expected = ""]) => ({
  command,
  expected,
}));

/** Header names are compared without case. */
const lowerCaseName = (header: string): string => header.replace(/^[^:]+/, (name) => name.toLowerCase());

interface Parts {
  readonly status: string;
  readonly headers: readonly string[];
  readonly body: string;
}

function parse(text: string): Parts {
  const [head = "", body = ""] = text.replaceAll("\r\n", "\n").split(/\n\n([\s\S]*)/);
  const [status = "", ...headers] = head.trim().split("\n");
  return { status, headers: headers.map(lowerCaseName), body: body.trim() };
}

describe("the README", () => {
  test("shows answers that its curl examples really get", async ({ gateway }) => {
    expect(pairs.length).toBeGreaterThan(10);
    expect(pairs.length).toBe(readme.match(/^curl /gm)?.length);
    for (const { command, expected } of pairs) {
      const wanted = parse(expected);
      const got = parse(
        await curl(command.replaceAll("http://127.0.0.1:8080", gateway.url).replaceAll("http://127.0.0.1:8081", gateway.adminUrl)),
      );
      expect([command, got.status]).toEqual([command, wanted.status]);
      for (const header of wanted.headers) expect([command, got.headers]).toEqual([command, expect.arrayContaining([header])]);
      if (wanted.body !== "") expect([command, JSON.parse(got.body)]).toMatchObject([command, JSON.parse(wanted.body)]);
      if (wanted.body.includes("12345678901234567890")) expect(got.body).toBe(wanted.body);
    }
  });
});
