// Checks an answer of the gateway against the OpenAPI document it publishes: status, media type,
// body and headers. The published schemas are open, because answers may grow; here they are closed,
// so that an undescribed member is noticed.
import { openApiDocument } from "@palisade/gateway";
import { Ajv2020, type AnySchema, type ValidateFunction } from "ajv/dist/2020.js";

export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

interface Described {
  readonly content?: Readonly<Record<string, { readonly schema: AnySchema }>>;
  readonly headers?: Readonly<Record<string, unknown>>;
}
interface Operation {
  readonly responses: Readonly<Record<string, Described>>;
}

const document = closed(openApiDocument()) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly headers: Readonly<Record<string, { readonly schema: AnySchema }>> };
};
const ajv = new Ajv2020({ strict: false, formats: { int64: true, "date-time": (text: string) => !Number.isNaN(Date.parse(text)) } });
const compiled = new Map<string, ValidateFunction>();
const describedHeaders = Object.keys(document.components.headers);

/** Throws with every difference. */
export function assertConforms(method: string, path: string, answer: WireAnswer): void {
  const found = operationOf(method, path);
  // A request that is no operation is answered by a problem that says so.
  const described = found === undefined ? onlyProblem : found.operation.responses[answer.status];
  const where = `${method} ${path} → ${answer.status}`;
  if (described === undefined) throw new Error(`${where} is not described`);
  assertBody(where, described, { method, answer });
  for (const name of describedHeaders) {
    const value = answer.headers[name.toLowerCase()];
    if (value === undefined) continue;
    if (described !== onlyProblem && described.headers?.[name] === undefined)
      throw new Error(`${where} carries ${name}, which is not described`);
    assertMatches(`${where} ${name}`, document.components.headers[name]?.schema ?? {}, value);
  }
}

function assertBody(
  where: string,
  described: Described,
  { method, answer }: { readonly method: string; readonly answer: WireAnswer },
): void {
  if (method === "HEAD") return;
  if (described.content === undefined) {
    if (answer.text !== "") throw new Error(`${where} has a body that is not described: ${answer.text}`);
    return;
  }
  const mediaType = answer.headers["content-type"] ?? "none";
  const content = described.content[mediaType];
  if (content === undefined)
    throw new Error(`${where} has the media type ${mediaType}, described are ${Object.keys(described.content).join(", ")}`);
  assertMatches(where, content.schema, JSON.parse(answer.text));
}

function assertMatches(where: string, schema: AnySchema, value: unknown): void {
  const key = JSON.stringify(schema);
  let validate = compiled.get(key);
  if (validate === undefined) {
    validate = ajv.compile({ ...(schema as object), components: document.components });
    compiled.set(key, validate);
  }
  if (!validate(value))
    throw new Error(`${where} does not match its description: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`);
}

const onlyProblem: Described = { content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } } };

function operationOf(method: string, target: string): { readonly operation: Operation } | undefined {
  const path = target.split("?")[0] ?? "";
  const verb = method === "HEAD" ? "get" : method.toLowerCase();
  // The longest template first: /{resource}/seal is also a /{resource}.
  const templates = Object.keys(document.paths).sort((a, b) => b.length - a.length);
  for (const template of templates) {
    const operation = document.paths[template]?.[verb];
    if (operation !== undefined && new RegExp(`^${template.replace(/\{\w+\}/, ".+")}$`).test(path)) return { operation };
  }
  return undefined;
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, closed(member)]));
  const isClosable = entries.type === "object" && typeof entries.properties === "object" && entries.additionalProperties === undefined;
  return isClosable ? { ...entries, additionalProperties: false } : entries;
}
