// JSON Patch (RFC 6902): what a patch may say, and what it makes of a document. Numbers keep every
// digit. One thing of RFC 6902 is missing: the document itself cannot be removed; DELETE does that.
import { MAX_OPERATIONS } from "../fence/write-request.js";
import { elementsOf, membersOf } from "./json-members.js";
import { jsonFault, MAX_JSON_DEPTH } from "./json-text.js";
import { isDeeperThan, isSame, type JsonTree, textOf, treeOf } from "./json-tree.js";
import { Problem } from "./problem.js";

/** All is done in one turn of the event loop, while other requests wait. */
export const MAX_PATCHED_BYTES = 1024 * 1024;

type Path = readonly string[];

/** `value` is JSON text. */
export type PatchOperation =
  | { readonly op: "add" | "replace" | "test"; readonly path: Path; readonly value: string }
  | { readonly op: "move" | "copy"; readonly path: Path; readonly from: Path }
  | { readonly op: "remove"; readonly path: Path };

/** Expects JSON text. Members that RFC 6902 does not name are passed over, as it demands. */
export function parseJsonPatch(text: string): readonly PatchOperation[] | Problem {
  const texts = elementsOf(text);
  if (texts === undefined) return new Problem("json_invalid", "A JSON patch is an array of operations (RFC 6902).");
  if (texts.length > MAX_OPERATIONS)
    return new Problem("json_invalid", `A JSON patch has at most ${MAX_OPERATIONS} operations; this one has ${texts.length}.`);
  const operations: PatchOperation[] = [];
  for (const [index, operationText] of texts.entries()) {
    const operation = parseOperation(operationText);
    if (typeof operation === "string") return new Problem("json_invalid", `Operation ${index}: ${operation}`, { operation: index });
    operations.push(operation);
  }
  return operations;
}

/** What is wrong with it, as text. */
function parseOperation(text: string): PatchOperation | string {
  const members = new Map(membersOf(text)?.map((member) => [member.key, member.text]));
  const op = textIn(members.get("op"));
  const path = pathOf(members.get("path"));
  if (path === undefined) return 'path must be a JSON pointer (RFC 6901): "" or a text that begins with a slash.';
  switch (op) {
    case "add":
    case "replace":
    case "test": {
      const value = members.get("value");
      return value === undefined ? `${op} needs a value.` : { op, path, value };
    }
    case "move":
    case "copy": {
      const from = pathOf(members.get("from"));
      if (from === undefined) return `${op} needs from, a JSON pointer.`;
      const isInto = op === "move" && from.length < path.length && from.every((key, index) => key === path[index]);
      return isInto ? "a value cannot be moved into itself." : { op, path, from };
    }
    case "remove":
      return path.length === 0 ? "the whole document is removed by DELETE." : { op, path };
    default:
      return "op must be add, remove, replace, move, copy or test.";
  }
}

function textIn(text: string | undefined): string | undefined {
  return text?.startsWith('"') ? String(JSON.parse(text)) : undefined;
}

function pathOf(text: string | undefined): Path | undefined {
  const pointer = textIn(text);
  if (pointer === undefined || pointer === "") return pointer === undefined ? undefined : [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) return undefined;
  const keys = pointer.slice(1).split("/");
  return keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/**
 * The document as text. Neither what comes out nor all that is copied on the way may be larger than
 * the limit: ten copies of copies make a thousand. A document that is too large is not read.
 */
export function patched(document: string, operations: readonly PatchOperation[], limitBytes: number): string | Problem {
  // Postgres writes a space after each comma and colon.
  if (document.length > 2 * limitBytes) return tooLarge(Buffer.byteLength(document), limitBytes);
  const copy = new PatchedDocument(document, limitBytes);
  for (const [index, operation] of operations.entries()) {
    const fault = copy.perform(operation);
    if (fault instanceof Problem) return fault;
    if (fault !== undefined) return new Problem("patch_failed", `Operation ${index} (${operation.op}): ${fault}`, { operation: index });
  }
  const text = copy.text();
  if (text instanceof Problem) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes > limitBytes) return tooLarge(bytes, limitBytes);
  // Values that are well by themselves may unfold to too much together.
  const fault = jsonFault(text, limitBytes);
  return fault === undefined ? text : new Problem(fault.code, `After the patch: ${fault.detail}`);
}

function tooLarge(documentBytes: number, limitBytes: number): Problem {
  const detail = `JSON Patch changes documents of at most ${limitBytes} bytes; this one has, or would have, ${documentBytes}.`;
  return new Problem("document_too_large", detail, { documentBytes, limitBytes });
}

/** Operations that are not too deep by themselves can pile up thirty thousand levels. */
function writtenText(tree: JsonTree): string | Problem {
  if (!isDeeperThan(MAX_JSON_DEPTH, tree)) return textOf(tree);
  return new Problem("json_invalid", `After the patch the document would be nested deeper than ${MAX_JSON_DEPTH} levels.`);
}

const NOTHING_THERE = "there is nothing at this place.";
const INDEX = /^(?:0|[1-9][0-9]*)$/;

class PatchedDocument {
  #document: JsonTree;
  #copied = 0;
  readonly #limitBytes: number;

  constructor(text: string, limitBytes: number) {
    this.#document = treeOf(text);
    this.#limitBytes = limitBytes;
  }

  text(): string | Problem {
    return writtenText(this.#document);
  }

  /** Why it cannot be done; undefined when it is done. */
  perform(operation: PatchOperation): string | Problem | undefined {
    const { path } = operation;
    switch (operation.op) {
      case "add":
        return this.#add(path, treeOf(operation.value));
      case "remove":
        return this.#take(path) === undefined ? NOTHING_THERE : undefined;
      case "replace":
        return this.#replace(path, treeOf(operation.value));
      case "move":
        return this.#move(operation.from, path);
      case "copy":
        return this.#copy(operation.from, path);
      case "test": {
        const found = this.#at(path);
        if (found === undefined) return NOTHING_THERE;
        return isSame(found, treeOf(operation.value)) ? undefined : "the value is another one.";
      }
    }
  }

  #at(path: Path): JsonTree | undefined {
    let tree: JsonTree | undefined = this.#document;
    for (const key of path) {
      if (tree instanceof Map) tree = tree.get(key);
      else if (Array.isArray(tree)) tree = INDEX.test(key) ? tree[Number(key)] : undefined;
      else return undefined;
    }
    return tree;
  }

  #add(path: Path, value: JsonTree): string | undefined {
    const key = path.at(-1);
    if (key === undefined) {
      this.#document = value;
      return undefined;
    }
    const parent = this.#at(path.slice(0, -1));
    if (parent instanceof Map) parent.set(key, value);
    else if (Array.isArray(parent)) {
      const index = key === "-" ? parent.length : INDEX.test(key) ? Number(key) : Number.POSITIVE_INFINITY;
      if (index > parent.length) return "the array has no such place.";
      parent.splice(index, 0, value);
    } else return "there is no object or array to add to.";
    return undefined;
  }

  #replace(path: Path, value: JsonTree): string | undefined {
    if (this.#at(path) === undefined) return NOTHING_THERE;
    const key = path.at(-1);
    const parent = this.#at(path.slice(0, -1));
    if (key === undefined) this.#document = value;
    else if (parent instanceof Map) parent.set(key, value);
    else if (Array.isArray(parent)) parent[Number(key)] = value;
    return undefined;
  }

  /** Removes what is there; undefined where there is nothing. Never the document itself. */
  #take(path: Path): JsonTree | undefined {
    const found = this.#at(path);
    const key = path.at(-1);
    const parent = this.#at(path.slice(0, -1));
    if (found === undefined || key === undefined) return undefined;
    if (parent instanceof Map) parent.delete(key);
    else if (Array.isArray(parent)) parent.splice(Number(key), 1);
    return found;
  }

  #move(from: Path, path: Path): string | undefined {
    if (this.#at(from) === undefined) return NOTHING_THERE;
    if (from.length === path.length && from.every((key, index) => key === path[index])) return undefined;
    const value = this.#take(from);
    return value === undefined ? NOTHING_THERE : this.#add(path, value);
  }

  #copy(from: Path, path: Path): string | Problem | undefined {
    const found = this.#at(from);
    if (found === undefined) return NOTHING_THERE;
    const text = writtenText(found);
    if (text instanceof Problem) return text;
    this.#copied += text.length;
    return this.#copied > this.#limitBytes ? tooLarge(this.#copied, this.#limitBytes) : this.#add(path, treeOf(text));
  }
}
