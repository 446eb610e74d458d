// The client runs in browsers and edge runtimes too, so it imports only its own files.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const folder = new URL("../../src/", import.meta.url);
const files = readdirSync(folder).map((name) => ({ name, text: readFileSync(new URL(name, folder), "utf8") }));

describe("the client", () => {
  test("imports only its own files: no server, no Postgres, no Redis, nothing of Node", () => {
    expect(files.length).toBeGreaterThan(5);
    const foreign = files.flatMap(({ name, text }) =>
      [...text.matchAll(/from "([^"]+)"|import\("([^"]+)"\)/g)]
        .map(([, specifier = ""]) => [name, specifier])
        .filter(([, specifier = ""]) => !/^\.\/[a-z-]+\.js$/.test(specifier))
        .filter(([file, specifier]) => file !== "tracing.ts" || specifier !== "@opentelemetry/api"),
    );
    expect(foreign).toEqual([]);
    for (const { text } of files) expect(text).not.toContain('from "./tracing.js"');
  });

  test("uses no global that only Node has", () => {
    for (const { name, text } of files)
      expect([
        name,
        /\b(process|Buffer|require|__dirname|setImmediate|global)\b/.exec(text.replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, "")),
      ]).toEqual([name, null]);
  });
});
