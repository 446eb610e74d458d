// Everything that a published package exports has a comment that editors show: the declaration
// itself, and each member of an exported interface or class.
import { posix } from "node:path";
import type { Checkout, SourceFile } from "./checkout.js";
import type { Finding, Rule } from "./rule.js";
import { isNode, type Node } from "./syntax.js";

export const documentedExports: Rule = {
  name: "everything that a published package exports has a comment of its own",
  findings: (checkout) =>
    checkout.files
      .filter(({ path }) => /^packages\/[^/]+\/package\.json$/.test(path))
      .flatMap((manifest) => publicEntries(checkout, manifest))
      .flatMap((entry) => [...exported(checkout, entry)])
      .flatMap(([file, name]) => undocumented(file, name)),
};

interface Manifest {
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string | { readonly default?: string }>>;
}

/** What users import; an entry that our packages share says so in its first lines. */
function publicEntries(checkout: Checkout, manifest: SourceFile): readonly SourceFile[] {
  const { private: isPrivate = false, exports: targets = {} } = JSON.parse(manifest.text) as Manifest;
  if (isPrivate) return [];
  return Object.values(targets).flatMap((target) => {
    const output = typeof target === "string" ? target : (target.default ?? "");
    const source = output.replace("./dist/", "src/").replace(/\.js$/, ".ts");
    const entry = checkout.file(posix.join(posix.dirname(manifest.path), source));
    return entry?.isCode !== true || entry.text.slice(0, 200).includes("No public API") ? [] : [entry];
  });
}

/** Where each name that the entry declares or passes on is declared. */
function* exported(checkout: Checkout, entry: SourceFile): Generator<readonly [SourceFile, string]> {
  for (const statement of statementsOf(entry)) {
    if (statement.type !== "ExportNamedDeclaration") continue;
    if (isNode(statement.declaration)) for (const name of declaredNames(statement.declaration)) yield [entry, name];
    const from = isNode(statement.source) ? String(statement.source.value) : "";
    const file = checkout.file(posix.join(posix.dirname(entry.path), from.replace(/\.js$/, ".ts")));
    if (file !== undefined) for (const { local } of nodesIn(statement.specifiers)) yield [file, nameOf(local)];
  }
}

function undocumented(file: SourceFile, name: string): readonly Finding[] {
  const found = statementsOf(file).flatMap((statement) => {
    const declaration = isNode(statement.declaration) ? statement.declaration : statement;
    return declaredNames(declaration).includes(name) ? [{ statement, declaration }] : [];
  });
  // Of overloads the first one tells what the function does.
  const [first] = found;
  if (first === undefined) return [`${file.path}:1: ${name} is not declared here`];
  const missing = isDocumented(file, first.statement) ? [] : [`${file.at(first.statement.start)}: ${name}`];
  const members = membersOf(first.declaration).filter((member) => member.type === "TSParameterProperty" || !isDocumented(file, member));
  return [...missing, ...members.map((member) => `${file.at(member.start)}: ${name}.${nameOf(member.key ?? member.parameter)}`)];
}

function declaredNames(declaration: Node): readonly string[] {
  if (declaration.type === "VariableDeclaration") return nodesIn(declaration.declarations).map(({ id }) => nameOf(id));
  return isNode(declaration.id) ? [nameOf(declaration.id)] : [];
}

function membersOf(declaration: Node): readonly Node[] {
  if (declaration.type !== "TSInterfaceDeclaration" && declaration.type !== "ClassDeclaration") return [];
  const members = isNode(declaration.body) ? nodesIn(declaration.body.body) : [];
  const isPublic = ({ key, override, accessibility }: Node): boolean =>
    isNode(key) && key.type !== "PrivateIdentifier" && override !== true && accessibility !== "private" && nameOf(key) !== "constructor";
  // Of a method that is declared more than once the first declaration tells what it does.
  const firsts = members.filter((member, index) => members.findIndex(({ key }) => nameOf(key) === nameOf(member.key)) === index);
  return [...firsts.filter(isPublic), ...members.flatMap(parameterProperties)];
}

/**
 * `constructor(readonly refusal: Refusal)` declares a member, but the compiler does not pass on a
 * comment there.
 */
function parameterProperties({ key, value }: Node): readonly Node[] {
  if (nameOf(key) !== "constructor" || !isNode(value)) return [];
  return nodesIn(value.params).filter(({ type }) => type === "TSParameterProperty");
}

/** Whether a comment for editors ends right before it. */
function isDocumented(file: SourceFile, node: Node): boolean {
  return /\/\*\*(?:(?!\*\/)[\s\S])*\*\/$/.test(file.text.slice(0, node.start).trimEnd());
}

function statementsOf(file: SourceFile): readonly Node[] {
  return nodesIn(file.program.body);
}

function nodesIn(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function nameOf(value: unknown): string {
  return isNode(value) ? String(value.name ?? "") : "";
}
