// The OpenAPI 3.1 document, made of the table of routes, the schemas that requests are checked against
// and the list of problems, so that no rule is described twice.
import { z } from "zod";
import { MAX_NAME_BYTES } from "../fence/verdict.js";
import { headersOf, type ProblemCode, statusOf } from "./problems.js";
import { type Operation, operations } from "./routes.js";
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

/** Problems of any route with a body. */
const ofBodies: readonly ProblemCode[] = ["json_invalid", "body_too_large", "document_too_large", "media_type_unsupported"];

const tags: Readonly<Record<Operation["tag"], string>> = {
  resources: "Documents, each behind its fence",
  transactions: "Several operations, all or nothing",
  history: "What was written, by whom",
  fences: "Fences as an operator sees and moves them",
  description: "This document",
};

/** The OpenAPI 3.1 description that a gateway serves at /openapi.json. */
export function openApiDocument(): Json {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const described = describe(operation);
    const head = operation.method === "GET" ? { head: headOf(operation, described) } : {};
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: described, ...head };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Palisade gateway",
      version: "1",
      description:
        "A fenced store: every write carries the fencing token of the lease it is made under, and a token below the highest one seen is refused.",
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: "Palisade" },
    },
    servers: [
      {
        url: "http://{host}:{port}",
        description: "A gateway, or the load balancer in front of several",
        variables: {
          host: { default: "127.0.0.1", description: "HOST" },
          port: { default: "8080", description: "PORT" },
        },
      },
    ],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
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

function describe({ path, id, tag, summary, headers = [], query, body, answers, answerHeaders = [], problems = [] }: Operation): Json {
  const named = path.includes("{resource}");
  const codes = [
    ...everywhere,
    ...(named ? (["resource_name_invalid"] as const) : []),
    ...(query === undefined ? [] : (["query_invalid"] as const)),
    ...(body === undefined ? [] : ofBodies),
    ...problems,
  ];
  const parameters = [...(named ? ["Resource"] : []), ...headers].map((name) => ({ $ref: `#/components/parameters/${name}` }));
  const success = Object.entries(answers).map(([status, schema]) => [
    status,
    {
      description: "Success",
      headers: headersNamed(["X-Request-Id", ...answerHeaders]),
      ...(schema === null ? {} : { content: content(["application/json"], schema) }),
    },
  ]);
  return {
    operationId: id,
    summary,
    description: `${summary}.`,
    tags: [tag],
    parameters: [...parameters, ...(query === undefined ? [] : queryParameters(query))],
    ...(body === undefined ? {} : { requestBody: { required: true, content: content(body.mediaTypes, body.schema) } }),
    responses: { ...Object.fromEntries(success), ...problemAnswers(codes) },
  };
}

/** The same answers without their bodies. */
function headOf({ id, summary }: Operation, { responses, ...described }: Json): Json {
  const bare = Object.entries(responses as Record<string, Json>).map(([status, { content: _body, ...answer }]) => [status, answer]);
  const description = `${summary}: the header of the answer to GET.`;
  return { ...described, operationId: id.replace(/^(?:get|list)/, "head"), description, responses: Object.fromEntries(bare) };
}

function headersNamed(names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function problemAnswers(codes: readonly ProblemCode[]): Json {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) byStatus.set(statusOf(code), [...(byStatus.get(statusOf(code)) ?? []), code]);
  return Object.fromEntries(
    [...byStatus].map(([status, list]) => [
      status,
      {
        description: `Refused: ${list.join(", ")}`,
        headers: headersNamed(["X-Request-Id", ...new Set(list.flatMap(headersOf))]),
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
    FencingToken: {
      ...header("Fencing-Token", token, "The token of the lease, and optionally the position of this write under it: 34;seq=7"),
      required: true,
    },
    SharedFencingToken: header("Fencing-Token", token, "For all operations that bring no token of their own"),
    IfMatch: header("If-Match", { type: "string" }, 'One strong entity tag, such as "12", or *'),
    IfNoneMatch: header("If-None-Match", { type: "string", const: "*" }, "Only if there is no document"),
    ReadIfNoneMatch: header("If-None-Match", { type: "string" }, "Entity tags the client already has"),
  };
}

function headers(): Json {
  return {
    ETag: { description: "The stored revision", schema: { type: "string", pattern: '^"[1-9][0-9]*"$' } },
    "Fencing-Token": { description: "The stored fence", schema: { type: "string", pattern: "^[1-9][0-9]{0,14}$" } },
    "X-Request-Id": { description: "Names this request in the log", schema: { type: "string" } },
    "Retry-After": { description: "Seconds to wait before another try", schema: { type: "string", pattern: "^[1-9][0-9]*$" } },
    "WWW-Authenticate": { description: "The scheme that is wanted", schema: { type: "string" } },
    Allow: { description: "The methods of this route", schema: { type: "string" } },
    "Accept-Encoding": { description: "The only encoding that is taken: none", schema: { type: "string", const: "identity" } },
    "Accept-Patch": { description: "The media types of a patch", schema: { type: "string" } },
  };
}
