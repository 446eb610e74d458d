// The body of a transaction, from text to the operations of the store. Each document stays the text
// it was, so that its numbers keep every digit. Shape, names, tokens and conditions are judged
// here; whether the operations may all happen is the store's answer.
import type { TransactionOperation } from "../fence/verdict.js";
import { MAX_OPERATIONS } from "../fence/write-request.js";
import { elementsOf, membersOf } from "./json-members.js";
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
  const rest = value === undefined ? text : `${text.slice(0, value.at)}null${text.slice(value.at + value.text.length)}`;
  const shape = JSON.parse(rest) as object;
  if (Object.keys(shape).length < members.length) return refuse("An operation has two members of the same name.");
  const parsed = operationSchema.safeParse(shape);
  if (!parsed.success) return refuse(firstIssue(parsed.error));
  const resource = checkResourceName(parsed.data.resource);
  if (resource instanceof Problem) return resource;
  const presented = tokenOf(parsed.data, shared);
  if (presented instanceof Problem) return presented;
  const condition = conditionOf(parsed.data);
  if (condition instanceof Problem) return condition;
  return { op: parsed.data.op, resource, ...presented, expected: condition.expected, value: value?.text, holder };
}

type ParsedOperation = ReturnType<typeof operationSchema.parse>;

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
