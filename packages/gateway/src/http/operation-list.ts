// The body of a transaction, from text to the operations of the store. Each document stays the text
// it was, so that its numbers keep every digit. Shape, names, tokens and conditions are judged
// here; whether the operations may all happen is the store's answer.
import type { TransactionOperation } from "../fence/verdict.js";
import { MAX_OPERATIONS } from "../fence/write-request.js";
import { elementsOf, type Member, membersOf } from "./json-members.js";
import { type PresentedToken, parseIfMatch, type WriteCondition } from "./preconditions.js";
import { Problem } from "./problem.js";
import { checkResourceName } from "./resource-name.js";
import { firstIssue, operation as operationSchema } from "./schemas.js";

export type Operations = readonly TransactionOperation[];

/** `shared` is the token of the header, for operations without their own. */
export function parseOperations(
  text: string,
  shared: PresentedToken | undefined,
  holder: string,
): readonly TransactionOperation[] | Problem {
  const texts = operationTexts(text);
  if (texts instanceof Problem) return texts;
  const operations: TransactionOperation[] = [];
  const seen = new Set<string>();
  for (const [index, operationText] of texts.entries()) {
    const operation = parseOperation(operationText, shared, holder);
    if (operation instanceof Problem) return new Problem(operation.code, operation.detail, { ...operation.facts, operation: index });
    if (seen.has(operation.resource)) return refuse("A resource may appear only once in a transaction.", index);
    seen.add(operation.resource);
    operations.push(operation);
  }
  return operations;
}

function operationTexts(text: string): readonly string[] | Problem {
  const members = membersOf(text);
  const only = members?.[0];
  if (members === undefined || members.length !== 1 || only?.key !== "operations")
    return refuse('The body must be an object with one member, "operations".');
  const texts = elementsOf(only.text);
  if (texts === undefined) return refuse("operations must be an array.");
  if (texts.length === 0 || texts.length > MAX_OPERATIONS)
    return refuse(`operations must have 1 to ${MAX_OPERATIONS} elements; it has ${texts.length}.`);
  return texts;
}

function parseOperation(text: string, shared: PresentedToken | undefined, holder: string): TransactionOperation | Problem {
  const members = membersOf(text);
  if (members === undefined) return refuse("An operation must be an object.");
  const value = members.find(({ key }) => key === "value");
  const shape = plainPutOf(members) ?? shapeOf(text, members, value);
  if (shape instanceof Problem) return shape;
  const resource = checkResourceName(shape.resource);
  if (resource instanceof Problem) return resource;
  const presented = tokenOf(shape, shared);
  if (presented instanceof Problem) return presented;
  const condition = conditionOf(shape);
  if (condition instanceof Problem) return condition;
  return { op: shape.op, resource, ...presented, expected: condition.expected, value: value?.text, holder };
}

type ParsedOperation = ReturnType<typeof operationSchema.parse>;

/**
 * A put with a resource, a document, and perhaps a token, each once and written without escapes.
 * Nearly all are: making an object of the text and judging that takes several times as long.
 */
function plainPutOf(members: readonly Member[]): ParsedOperation | undefined {
  const texts: { op?: string; resource?: string; value?: string; token?: string } = {};
  for (const { key, text } of members) {
    if (!isPlainMember(key) || texts[key] !== undefined) return undefined;
    texts[key] = text;
  }
  const { op, resource, value, token } = texts;
  if (op !== '"put"' || value === undefined || !isPlainString(resource)) return undefined;
  if (token === undefined) return { op: "put", resource: resource.slice(1, -1), value };
  return PLAIN_TOKEN.test(token) ? { op: "put", resource: resource.slice(1, -1), value, token: Number(token) } : undefined;
}

const PLAIN_TOKEN = /^[1-9][0-9]{0,14}$/;

function isPlainMember(key: string): key is "op" | "resource" | "value" | "token" {
  return key === "op" || key === "resource" || key === "value" || key === "token";
}

function isPlainString(text: string | undefined): text is string {
  return text?.startsWith('"') === true && !text.includes("\\");
}

function shapeOf(text: string, members: readonly Member[], value: Member | undefined): ParsedOperation | Problem {
  const rest = value === undefined ? text : `${text.slice(0, value.at)}null${text.slice(value.at + value.text.length)}`;
  const shape = JSON.parse(rest) as object;
  if (Object.keys(shape).length < members.length) return refuse("An operation has two members of the same name.");
  const parsed = operationSchema.safeParse(shape);
  return parsed.success ? parsed.data : refuse(firstIssue(parsed.error));
}

function tokenOf(parsed: ParsedOperation, shared: PresentedToken | undefined): { token: number; seq: number | undefined } | Problem {
  const token = parsed.token ?? shared?.token;
  if (token === undefined)
    return new Problem("fencing_token_required", "This operation has no token, and there is no Fencing-Token header for all.");
  return { token, seq: parsed.seq ?? (parsed.token === undefined ? (shared?.seq ?? undefined) : undefined) };
}

function conditionOf(parsed: ParsedOperation): WriteCondition | Problem {
  if (parsed.op === "seal") return { expected: undefined };
  if (parsed.ifNoneMatch !== undefined) {
    if (parsed.ifMatch === undefined) return { expected: "absent" };
    return new Problem("precondition_unsupported", "ifMatch and ifNoneMatch cannot be combined.");
  }
  if (typeof parsed.ifMatch === "string") return parseIfMatch(parsed.ifMatch);
  return { expected: parsed.ifMatch };
}

function refuse(detail: string, operation?: number): Problem {
  return new Problem("json_invalid", detail, operation === undefined ? {} : { operation });
}
