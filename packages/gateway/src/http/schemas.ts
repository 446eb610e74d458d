// The shapes of everything that travels as JSON: what requests are checked against, and what the
// OpenAPI document is generated from. Requests are closed, so that a misspelled member is refused;
// answers are open, so that a member can be added later. Rules that only a parser can check (names,
// header syntax, numbers as text) stand in their own files and are quoted here.
import { z } from "zod";
import { MAX_NAME_BYTES, MAX_OPERATIONS, MAX_TOKEN } from "../fence/verdict.js";
import { problemCodes } from "./problems.js";
import { FENCING_TOKEN } from "./request.js";

const MAX_PAGE_ITEMS = 1_000;

/** Without it, generated clients in Go, Java and others take 32 bits, and tokens have more. */
const int64 = { format: "int64" } as const;
const token = z
  .int()
  .min(1)
  .max(MAX_TOKEN)
  .meta({ ...int64, description: "A fencing token: only ever rises for one resource" });
const seq = z
  .int()
  .min(1)
  .max(MAX_TOKEN)
  .meta({ ...int64, description: "Position among the writes of one holder; must rise within one token" });
const rev = z
  .int()
  .min(0)
  .max(MAX_TOKEN)
  .meta({ ...int64, description: "Counts the accepted writes of the resource; 0 when there was none" });
const resource = z.string().min(1).max(MAX_NAME_BYTES);
const document = z.unknown().meta({ description: "Any JSON; numbers keep every digit" });

export const fencingTokenHeader = z.string().regex(FENCING_TOKEN);

export const writeReceipt = z.object({ resource, token, rev });
export const patchReceipt = z.object({
  resource,
  token,
  rev,
  value: document.optional().meta({ description: "The new document, for callers who may read it" }),
});
export const sealReceipt = z.object({ resource, token, rev, value: document });

const item = z.object({
  resource,
  token,
  rev,
  seq: z.int().min(0).max(MAX_TOKEN).meta(int64),
  holder: z.string().nullable().meta({ description: "The credential that wrote last" }),
  updatedAt: z.iso.datetime(),
  value: document.optional(),
});
export const fenceState = item.omit({ value: true }).extend({
  moved: z
    .object({
      at: z.iso.datetime(),
      by: z.string().meta({ description: "The credential of the operator" }),
      reason: z.string(),
      previousToken: token.nullable(),
      token,
    })
    .nullable()
    .meta({ description: "The last time that an operator moved this fence, also to take the lock away; null: never" }),
});
export const resourcePage = z.object({
  items: z.array(item),
  nextCursor: z.string().nullable(),
  snapshot: z.literal(false).optional().meta({
    description: "Present where tables are distributed: the page may show one write of a transaction and lack another",
  }),
});

export const listQuery = z.strictObject({
  prefix: z.string().max(MAX_NAME_BYTES).default(""),
  limit: z
    .string()
    .regex(/^[1-9][0-9]{0,3}$/)
    .transform(Number)
    .pipe(z.int().max(MAX_PAGE_ITEMS))
    .default(100),
  cursor: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,1000}$/)
    .optional(),
  include: z.enum(["fences", "documents"]).default("fences"),
  tombstones: z
    .literal("include")
    .optional()
    .meta({ description: "Also resources without a document: deleted, or sealed and never written" }),
});

export const historyQuery = z.strictObject({
  limit: listQuery.shape.limit,
  before: z
    .string()
    .regex(/^[1-9][0-9]{0,14}$/)
    .transform(Number)
    .optional(),
});
const historyEntry = z.object({
  rev: z.int().min(1).meta(int64),
  op: z.enum(["put", "patch", "delete"]),
  token,
  seq: z.int().min(0).meta(int64),
  holder: z.string().nullable(),
  at: z.iso.datetime(),
});
export const historyPage = z.object({ resource, entries: z.array(historyEntry), nextBefore: rev.nullable() });

export const refusedQuery = z.strictObject({
  prefix: listQuery.shape.prefix,
  limit: listQuery.shape.limit,
  since: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text))
    .optional(),
  before: historyQuery.shape.before,
});
const refusedEntry = z.object({
  id: z.int().min(1).meta(int64),
  at: z.iso.datetime(),
  firstAt: z.iso.datetime(),
  times: z
    .int()
    .min(1)
    .meta({ ...int64, description: "How often this was refused, from firstAt to at; equal refusals are one entry" }),
  resource,
  code: z.string().meta({ description: "The code of the problem that was answered" }),
  presentedToken: token.nullable(),
  currentToken: token.nullable(),
  caller: z.string().meta({ description: "The credential of the request" }),
});
export const refusedPage = z.object({
  since: z.iso.datetime().meta({ description: "From then on this gateway has all it refused: since its start, or the last 1 000" }),
  entries: z.array(refusedEntry),
  nextBefore: z.int().min(1).meta(int64).nullable(),
});

// `value` is left out here: it stays text (see writes.ts).
const operationHead = { resource: z.string(), token: token.optional(), seq: seq.optional() };
const ifMatch = z.union([z.int().min(1).max(MAX_TOKEN).meta(int64), z.string()]).optional();
const conditions = { ifMatch, ifNoneMatch: z.literal("*").optional() };
export const operation = z.discriminatedUnion("op", [
  z.strictObject({ op: z.literal("put"), ...operationHead, ...conditions, value: document }),
  z.strictObject({ op: z.literal("patch"), ...operationHead, ...conditions, value: document }),
  z.strictObject({ op: z.literal("delete"), ...operationHead, ...conditions }),
  z.strictObject({ op: z.literal("seal"), ...operationHead }),
]);
export const transactionRequest = z.strictObject({ operations: z.array(operation).min(1).max(MAX_OPERATIONS) });
export const transactionReceipt = z.object({
  results: z.array(z.object({ resource, token, rev, value: document.optional() })),
});

export const fenceChange = z.strictObject({ action: z.enum(["raise", "lower"]), token, reason: z.string().trim().min(1).max(1_000) });
export const fenceReceipt = z.object({ resource, previousToken: token.nullable(), token });

export const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.enum(problemCodes),
  detail: z.string(),
  resource: resource.optional(),
  presentedToken: token.optional(),
  currentToken: token.optional(),
  currentSeq: z.int().meta(int64).optional(),
  currentETag: z.string().optional(),
  currentRevs: z.array(rev).optional(),
  documentBytes: z.int().optional().meta({ description: "Of the document that would have been stored" }),
  limitBytes: z.int().optional().meta({ description: "What a stored document may have" }),
  outcome: z.enum(["not_applied", "unknown"]).optional(),
  operation: z.int().optional().meta({ description: "Which operation of a transaction, counted from 0" }),
  requestId: z.string().optional(),
});

/** The schemas that have a name of their own in the OpenAPI document. */
export const named: Readonly<Record<string, z.ZodType>> = {
  WriteReceipt: writeReceipt,
  PatchReceipt: patchReceipt,
  SealReceipt: sealReceipt,
  FenceState: fenceState,
  ResourcePage: resourcePage,
  HistoryPage: historyPage,
  RefusedPage: refusedPage,
  Transaction: transactionRequest,
  TransactionReceipt: transactionReceipt,
  FenceChange: fenceChange,
  FenceReceipt: fenceReceipt,
  Problem: problem,
};

/** The first fault and its place, for a `detail`. */
export function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return "does not have the expected shape";
  const place = issue.path.map(String).join(".");
  return `${place === "" ? "the body" : place}: ${issue.message}`;
}
