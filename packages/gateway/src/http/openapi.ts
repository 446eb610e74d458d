// The OpenAPI 3.1 document, generated from the schemas that requests are checked against and the
// table of problems, so that no rule is described twice.
import { z } from "zod";
import { MAX_NAME_BYTES } from "../fence/write-request.js";
import { type OperationDescription, operations } from "./openapi-operations.js";
import { type ProblemCode, statusOf } from "./problem.js";
import * as schemas from "./schemas.js";

type Json = Record<string, unknown>;

/** Problems that any route may answer. */
const everywhere: readonly ProblemCode[] = [
  "request_malformed",
  "unauthenticated",
  "forbidden_scope",
  "request_timeout",
  "rate_limited",
  "headers_too_many",
  "internal",
  "unavailable",
];

export function openApiDocument(): Json {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Palisade gateway",
      version: "1",
      description:
        "A fenced store: every write carries the fencing token of the lease it is made under, and a token below the highest one seen is refused.",
      license: { name: "MIT", identifier: "MIT" },
    },
    paths,
    security: [{ bearer: [] }, {}],
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "An API key or a JWT" } },
      parameters: parameters(),
      headers: headers(),
      schemas: Object.fromEntries(Object.entries(schemas.named).map(([name, schema]) => [name, jsonSchema(schema)])),
    },
  };
}

let text: string | undefined;
export function openApiText(): string {
  text ??= JSON.stringify(openApiDocument());
  return text;
}

function describe(operation: OperationDescription): Json {
  const query = operation.query === undefined ? [] : queryParameters(operation.query);
  const named = operation.parameters.map((name) => ({ $ref: `#/components/parameters/${name}` }));
  return {
    operationId: operation.id,
    summary: operation.summary,
    parameters: [...named, ...query],
    ...(operation.request === undefined
      ? {}
      : { requestBody: { required: true, content: content(operation.request.mediaTypes, operation.request.schema) } }),
    responses: { ...answers(operation), ...problemAnswers([...everywhere, ...operation.problems]) },
  };
}

function answers(operation: OperationDescription): Json {
  const answerHeaders = Object.fromEntries(
    ["X-Request-Id", ...operation.answerHeaders].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
  return Object.fromEntries(
    Object.entries(operation.answers).map(([status, schema]) => [
      status,
      {
        description: "Success",
        headers: answerHeaders,
        ...(schema === null ? {} : { content: content(["application/json"], schema) }),
      },
    ]),
  );
}

function problemAnswers(codes: readonly ProblemCode[]): Json {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) byStatus.set(statusOf(code), [...(byStatus.get(statusOf(code)) ?? []), code]);
  return Object.fromEntries(
    [...byStatus].map(([status, list]) => [
      status,
      {
        description: `Refused: ${list.join(", ")}`,
        content: {
          "application/problem+json": {
            schema: {
              allOf: [{ $ref: "#/components/schemas/Problem" }, { properties: { status: { const: status }, code: { enum: list } } }],
            },
          },
        },
      },
    ]),
  );
}

function content(mediaTypes: readonly string[], schema: z.ZodType): Json {
  const [name] = Object.entries(schemas.named).find(([, known]) => known === schema) ?? [];
  const shown = name === undefined ? jsonSchema(schema) : { $ref: `#/components/schemas/${name}` };
  return Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema: shown }]));
}

function jsonSchema(schema: z.ZodType): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target: "draft-2020-12", io: "input" });
  return rest;
}

function queryParameters(query: z.ZodObject): Json[] {
  return Object.entries(query.shape).map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    schema: jsonSchema(schema as z.ZodType),
  }));
}

function parameters(): Json {
  const header = (name: string, schema: Json, description: string): Json => ({ name, in: "header", required: false, schema, description });
  const token = jsonSchema(schemas.fencingTokenHeader);
  return {
    Resource: {
      name: "resource",
      in: "path",
      required: true,
      description: `1 to ${MAX_NAME_BYTES} bytes of UTF-8 in normalization form C; may contain /, but no empty, . or .. segment and no control character`,
      schema: { type: "string", minLength: 1, maxLength: MAX_NAME_BYTES },
    },
    Function: {
      name: "function",
      in: "path",
      required: true,
      description: "Schema and name, one of PALISADE_CALL_FUNCTIONS",
      schema: { type: "string", pattern: "^[a-z_][a-z0-9_]*\\.[a-z_][a-z0-9_]*$" },
    },
    FencingToken: {
      ...header("Fencing-Token", token, "The token of the lease, and optionally the position of this write under it: 34;seq=7"),
      required: true,
    },
    SharedFencingToken: header("Fencing-Token", token, "For all operations that bring no token of their own"),
    IfMatch: header("If-Match", { type: "string" }, 'One strong entity tag, such as "12", or *'),
    IfNoneMatch: header("If-None-Match", { const: "*" }, "Only if there is no document"),
    ReadIfNoneMatch: header("If-None-Match", { type: "string" }, "Entity tags the client already has"),
    IdempotencyKey: header(
      "Idempotency-Key",
      { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
      "Names one intended write, so that a retry is answered and not repeated",
    ),
  };
}

function headers(): Json {
  return {
    ETag: { description: "The stored revision", schema: { type: "string", pattern: '^"[1-9][0-9]*"$' } },
    "Fencing-Token": { description: "The stored fence", schema: { type: "string", pattern: "^[1-9][0-9]{0,14}$" } },
    "X-Request-Id": { description: "Names this request in the log", schema: { type: "string" } },
    "Idempotent-Replayed": {
      description: "Present when the answer is that of an earlier request with the same key",
      schema: { const: "true" },
    },
  };
}
