// The OpenAPI 3.1 document, generated from the schemas that requests are checked against and the
// table of problems, so that no rule is described twice.
import { z } from "zod";
import { MAX_NAME_BYTES } from "../fence/verdict.js";
import { type ProblemCode, statusOf } from "./answer.js";
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

/** The OpenAPI 3.1 description that a gateway serves at /openapi.json. */
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

function describe(operation: OperationDescription): Json {
  const query = operation.query === undefined ? [] : queryParameters(operation.query);
  const named = operation.parameters.map((name) => ({ $ref: `#/components/parameters/${name}` }));
  return {
    operationId: operation.id,
    summary: operation.summary,
    description: `${operation.summary}.`,
    tags: [operation.tag],
    parameters: [...named, ...query],
    ...(operation.request === undefined
      ? {}
      : { requestBody: { required: true, content: content(operation.request.mediaTypes, operation.request.schema) } }),
    responses: { ...answers(operation), ...problemAnswers([...everywhere, ...operation.problems]) },
  };
}

function answers(operation: OperationDescription): Json {
  const answerHeaders = headersNamed(["X-Request-Id", ...operation.answerHeaders]);
  return Object.fromEntries(
    Object.entries(operation.answers).map(([status, schema]) => [
      status,
      {
        description: "Success",
        headers: answerHeaders,
        ...(schema === null ? {} : { content: content(json, schema) }),
      },
    ]),
  );
}

/** What a problem says in its header, besides the id of the request. */
const problemHeaders: { readonly [Code in ProblemCode]?: readonly string[] } = {
  unauthenticated: ["WWW-Authenticate"],
  not_found: ["Fencing-Token"],
  method_not_allowed: ["Allow"],
  sequence_out_of_order: ["ETag"],
  contention: ["Retry-After"],
  fence_unchanged: ["Fencing-Token"],
  fencing_token_stale: ["Fencing-Token"],
  etag_mismatch: ["ETag"],
  media_type_unsupported: ["Accept-Encoding", "Accept-Patch"],
  rate_limited: ["Retry-After"],
  unavailable: ["Retry-After"],
  verification_unavailable: ["Retry-After"],
};

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
        headers: headersNamed(["X-Request-Id", ...new Set(list.flatMap((code) => problemHeaders[code] ?? []))]),
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

// Every operation of the API: what it takes, what it answers, which problems it may have.
// openapi.ts turns this list into the document.

const tags = {
  resources: "Documents, each behind its fence",
  transactions: "Several operations, all or nothing",
  history: "What was written, by whom",
  fences: "Fences as an operator sees and moves them",
  description: "This document",
} as const;

interface RequestBody {
  readonly mediaTypes: readonly string[];
  readonly schema: z.ZodType;
}

interface OperationDescription {
  readonly method: "get" | "put" | "patch" | "delete" | "post";
  readonly path: string;
  readonly id: string;
  readonly tag: keyof typeof tags;
  readonly summary: string;
  readonly parameters: readonly string[];
  readonly query?: z.ZodObject | undefined;
  readonly request?: RequestBody | undefined;
  /** Status to the schema of its body; null where there is none. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  readonly answerHeaders: readonly string[];
  readonly problems: readonly ProblemCode[];
}

const name: readonly ProblemCode[] = ["resource_name_invalid"];
const body: readonly ProblemCode[] = ["json_invalid", "body_too_large", "document_too_large", "media_type_unsupported"];
const fence: readonly ProblemCode[] = [
  "fencing_token_malformed",
  "fencing_token_required",
  "fencing_token_unissued",
  "fencing_token_stale",
  "sequence_out_of_order",
  "contention",
  "verification_unavailable",
  "outcome_unknown",
  "precondition_unsupported",
];
const write: readonly ProblemCode[] = [...name, ...fence, "etag_mismatch"];
const writeParameters = ["Resource", "FencingToken", "IfMatch", "IfNoneMatch"];
const stored = ["ETag", "Fencing-Token"];
const anyDocument = z.unknown();
const json = ["application/json"];

const operations: readonly OperationDescription[] = [
  {
    method: "put",
    path: "/v1/resources/{resource}",
    id: "putResource",
    tag: "resources",
    summary: "Store a document",
    parameters: writeParameters,
    request: { mediaTypes: json, schema: anyDocument },
    answers: { 200: schemas.writeReceipt, 201: schemas.writeReceipt },
    answerHeaders: stored,
    problems: [...write, ...body],
  },
  {
    method: "patch",
    path: "/v1/resources/{resource}",
    id: "patchResource",
    tag: "resources",
    summary: "Change a document by a JSON merge patch (RFC 7396)",
    parameters: writeParameters,
    request: {
      mediaTypes: ["application/merge-patch+json", ...json],
      schema: anyDocument,
    },
    answers: { 200: schemas.patchReceipt },
    answerHeaders: stored,
    problems: [...write, ...body, "not_found"],
  },
  {
    method: "delete",
    path: "/v1/resources/{resource}",
    id: "deleteResource",
    tag: "resources",
    summary: "Remove the document; the fence stays",
    parameters: writeParameters,
    answers: { 204: null },
    answerHeaders: stored,
    problems: [...write, "not_found"],
  },
  {
    method: "get",
    path: "/v1/resources/{resource}",
    id: "getResource",
    tag: "resources",
    summary: "Read the document",
    parameters: ["Resource", "ReadIfNoneMatch"],
    answers: { 200: anyDocument, 304: null },
    answerHeaders: ["ETag", "Fencing-Token"],
    problems: [...name, "precondition_unsupported", "not_found"],
  },
  {
    method: "post",
    path: "/v1/resources/{resource}/seal",
    id: "sealResource",
    tag: "resources",
    summary: "Raise the fence without a write and read the document: after it, no older holder can change what was read",
    parameters: ["Resource", "FencingToken"],
    answers: { 200: schemas.sealReceipt },
    answerHeaders: ["ETag", "Fencing-Token"],
    problems: [...name, ...fence, "method_not_allowed"],
  },
  {
    method: "get",
    path: "/v1/resources",
    id: "listResources",
    tag: "resources",
    summary: "Resources by name, in pages",
    parameters: [],
    query: schemas.listQuery,
    answers: { 200: schemas.resourcePage },
    answerHeaders: [],
    problems: ["query_invalid"],
  },
  {
    method: "post",
    path: "/v1/transactions",
    id: "transact",
    tag: "transactions",
    summary: "Several operations on different resources, all or nothing",
    parameters: ["SharedFencingToken"],
    request: { mediaTypes: json, schema: schemas.transactionRequest },
    answers: { 200: schemas.transactionReceipt },
    answerHeaders: [],
    problems: [...write, ...body, "not_found"],
  },
  {
    method: "get",
    path: "/v1/history/{resource}",
    id: "getHistory",
    tag: "history",
    summary: "Accepted writes of a resource, newest first, where history is kept",
    parameters: ["Resource"],
    query: schemas.historyQuery,
    answers: { 200: schemas.historyPage },
    answerHeaders: [],
    problems: [...name, "query_invalid", "not_found"],
  },
  {
    method: "get",
    path: "/v1/refused",
    id: "listRefused",
    tag: "history",
    summary: "Writes that this gateway refused, newest first: the last 1 000 since its start",
    parameters: [],
    query: schemas.refusedQuery,
    answers: { 200: schemas.refusedPage },
    answerHeaders: [],
    problems: ["query_invalid"],
  },
  {
    method: "get",
    path: "/v1/fences/{resource}",
    id: "getFence",
    tag: "fences",
    summary: "The fence of a resource and its last holder, with or without a document",
    parameters: ["Resource"],
    answers: { 200: schemas.fenceState },
    answerHeaders: ["Fencing-Token"],
    problems: [...name, "not_found"],
  },
  {
    method: "post",
    path: "/v1/fences/{resource}",
    id: "changeFence",
    tag: "fences",
    summary: "Move a fence by hand; the credential and the reason are kept",
    parameters: ["Resource"],
    request: { mediaTypes: json, schema: schemas.fenceChange },
    answers: { 200: schemas.fenceReceipt },
    answerHeaders: ["Fencing-Token"],
    problems: [...name, ...body, "fence_unchanged", "contention", "outcome_unknown"],
  },
  {
    method: "get",
    path: "/openapi.json",
    id: "getDescription",
    tag: "description",
    summary: "This document",
    parameters: [],
    answers: { 200: z.record(z.string(), z.unknown()) },
    answerHeaders: [],
    problems: [],
  },
];
