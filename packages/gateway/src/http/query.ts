// Query strings, read strictly: form encoding, UTF-8, every parameter known and given once.
// Express' own parser makes arrays and objects of odd names, so it is not used.
import type { z } from "zod";
import { Problem } from "./problem.js";

export function parseQuery<S extends z.ZodType>(url: string, schema: S): z.output<S> | Problem {
  const start = url.indexOf("?");
  const parameters: Record<string, string> = {};
  for (const pair of start === -1 ? [] : url.slice(start + 1).split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = decode(equals === -1 ? "" : pair.slice(equals + 1));
    if (name === undefined || value === undefined) return new Problem("query_invalid", "The query does not decode to UTF-8 text.");
    if (Object.hasOwn(parameters, name)) return new Problem("query_invalid", "A query parameter was given twice.");
    Object.defineProperty(parameters, name, { value, enumerable: true });
  }
  const parsed = schema.safeParse(parameters);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return new Problem(
    "query_invalid",
    `The query parameter ${issue?.path.map(String).join(".") || "list"} is not understood: ${issue?.message ?? ""}`,
  );
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}
