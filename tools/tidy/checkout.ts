// The files a rule may look at: everything a commit could hold, as text, with a syntax tree made on
// demand. Decides what is source and what is generated.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { type Program, parse } from "./syntax.js";

const generated = new Set(["node_modules", "dist", "bundle", ".build", ".cache", ".git", "pnpm-lock.yaml", "package-lock.json"]);
const TEXTUAL = /(\.(ts|mts|mjs|js|json|md|yml|yaml|lua|sql|sh|c|tla|cfg|ini|patch|diff)|Dockerfile|\/run|LICENSE)$/;
/** They are there, and documents show them; there is nothing in them to read. */
const PICTURE = /\.(png|svg)$/;

export class SourceFile {
  #program: Program | undefined;

  constructor(
    /** Relative to the root, with forward slashes. */
    readonly path: string,
    readonly text: string,
  ) {}

  get lines(): readonly string[] {
    return this.text.split("\n");
  }

  /** TypeScript or JavaScript: what has a syntax tree. */
  get isCode(): boolean {
    return /\.(ts|mts|mjs|js)$/.test(this.path);
  }

  get isTest(): boolean {
    return this.path.endsWith(".test.ts");
  }

  get program(): Program {
    this.#program ??= parse(this.path, this.text);
    return this.#program;
  }

  /** "path:line" of a character offset. */
  at(offset: number): string {
    return `${this.path}:${this.text.slice(0, offset).split("\n").length}`;
  }
}

export class Checkout {
  readonly #byPath: ReadonlyMap<string, SourceFile>;

  constructor(readonly files: readonly SourceFile[]) {
    this.#byPath = new Map(files.map((file) => [file.path, file]));
  }

  file(path: string): SourceFile | undefined {
    return this.#byPath.get(path);
  }

  get code(): readonly SourceFile[] {
    return this.files.filter((file) => file.isCode);
  }

  /** The source of one package, or of all of them. */
  sourcesOf(name = "[^/]+"): readonly SourceFile[] {
    const inside = new RegExp(`^packages/${name}/src/`);
    return this.files.filter((file) => inside.test(file.path));
  }
}

export function readCheckout(root: string): Checkout {
  return new Checkout([...walk(root)].sort().map((path) => new SourceFile(relative(root, path).replaceAll(sep, "/"), textOf(path))));
}

function textOf(path: string): string {
  return PICTURE.test(path) ? "" : readFileSync(path, "utf8");
}

/** A checkout that exists only in a test. */
export function checkoutOf(texts: Readonly<Record<string, string>>): Checkout {
  return new Checkout(Object.entries(texts).map(([path, text]) => new SourceFile(path, text)));
}

function* walk(directory: string): Generator<string> {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (generated.has(entry.name)) continue;
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else if (entry.isFile() && (TEXTUAL.test(path) || PICTURE.test(path))) yield path;
  }
}
