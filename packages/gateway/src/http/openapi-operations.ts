// Every operation of the API: what it takes, what it answers, which problems it may have.
// openapi.ts turns this list into the document.
import { z } from "zod";
import type { ProblemCode } from "./problem.js";
import * as schemas from "./schemas.js";

export const tags = {
  resources: "Documents, each behind its fence",
  transactions: "Several operations, all or nothing",
  history: "What was written, by whom",
  fences: "Fences as an operator sees and moves them",
  description: "This document",
} as const;

export interface RequestBody {
  readonly mediaTypes: readonly string[];
  readonly schema: z.ZodType;
  /** Media types whose bodies are other ones. */
  readonly others?: Readonly<Record<string, z.ZodType>>;
}

export interface OperationDescription {
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
  /** Of the answers; JSON when absent. */
  readonly mediaType?: "text/event-stream" | undefined;
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
const write: readonly ProblemCode[] = [
  ...name,
  ...fence,
  "etag_mismatch",
  "idempotency_key_malformed",
  "idempotency_in_flight",
  "idempotency_key_reused",
];
const writeParameters = ["Resource", "FencingToken", "IfMatch", "IfNoneMatch", "IdempotencyKey"];
const stored = ["ETag", "Fencing-Token", "Idempotent-Replayed"];
const anyDocument = z.unknown();
const json = ["application/json"];

export const operations: readonly OperationDescription[] = [
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
    summary: "Change a document by a JSON merge patch (RFC 7396) or a JSON Patch (RFC 6902)",
    parameters: writeParameters,
    request: {
      mediaTypes: ["application/merge-patch+json", ...json],
      schema: anyDocument,
      others: { "application/json-patch+json": schemas.jsonPatch },
    },
    answers: { 200: schemas.patchReceipt },
    answerHeaders: stored,
    problems: [...write, ...body, "not_found", "patch_failed"],
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
    parameters: ["SharedFencingToken", "IdempotencyKey"],
    request: { mediaTypes: json, schema: schemas.transactionRequest },
    answers: { 200: schemas.transactionReceipt },
    answerHeaders: ["Idempotent-Replayed"],
    problems: [...write, ...body, "not_found"],
  },
  {
    method: "post",
    path: "/v1/call/{function}",
    id: "callFunction",
    tag: "transactions",
    summary: "Call a function of the database in one transaction that is guarded by the leases first, where it is allowed",
    parameters: ["Function", "SharedFencingToken"],
    request: { mediaTypes: json, schema: schemas.callRequest },
    answers: { 200: schemas.callReceipt },
    answerHeaders: [],
    problems: [...name, ...fence, ...body, "function_unknown", "function_failed"],
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
    path: "/v1/changes",
    id: "streamChanges",
    tag: "history",
    summary: "Accepted writes as server-sent events, in order and without a gap, where history is kept; the data of each is a Change",
    parameters: ["LastEventID"],
    query: schemas.changesQuery,
    answers: { 200: schemas.change },
    mediaType: "text/event-stream",
    answerHeaders: [],
    problems: ["query_invalid", "not_found", "changes_gone"],
  },
  {
    method: "get",
    path: "/v1/refused",
    id: "listRefused",
    tag: "history",
    summary: "Writes that were refused, newest first, where they are kept",
    parameters: [],
    query: schemas.refusedQuery,
    answers: { 200: schemas.refusedPage },
    answerHeaders: [],
    problems: ["query_invalid", "not_found"],
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
