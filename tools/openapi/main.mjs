// `npm run openapi`: writes the OpenAPI document that a gateway serves, has two linters judge it,
// and generates a client from it in a language whose integers have a size: a token must get 64
// bits. These programs bring hundreds of packages, so they are fetched here and by nobody who
// installs the project.
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openApiDocument } from "../../packages/gateway/dist/index.js";
import { perform, Refusal, run } from "../run.mjs";

const redocly = "@redocly/cli@2.77.0";
const spectral = "@stoplight/spectral-cli@6.16.3";
const generator = "openapi-generator-plus@2.22.0";
const javaTemplates = "@openapi-generator-plus/java-jaxrs-client-generator@5.0.0";

/** Goes with the task's folder for what is temporary. */
const folder = mkdtempSync(join(tmpdir(), "palisade-openapi-"));
/** @param {string} name @param {string} text */
const write = (name, text) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

/** @param {string[]} command */
async function must(command) {
  const { code } = await run(command, { output: "shown" });
  if (code !== 0) throw new Refusal(`${command.slice(0, 2).join(" ")} ended with exit code ${code}`);
}

/** @param {string} program @param {string[]} args */
async function installed(program, ...args) {
  await must([join(folder, "node_modules", ".bin", program), ...args]);
}

/**
 * The types that the generated classes give to a token, a revision or a sequence number.
 * @param {string} name @param {string} document
 */
async function tokenTypes(name, document) {
  write(`${name}.json`, document);
  const templates = join(folder, "node_modules", javaTemplates.replace(/@[^@]*$/, ""));
  const config = write(`${name}.yaml`, `inputPath: ${name}.json\noutputPath: ${name}\ngenerator: "${templates}"\npackage: palisade\n`);
  await installed("openapi-generator-plus", "-c", config);
  const files = readdirSync(join(folder, name), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".java"));
  const fields = /private ([\w.]+) (?:token|presentedToken|currentToken|previousToken|rev|seq|currentSeq|nextBefore);/g;
  return files.flatMap((file) => [...readFileSync(join(folder, name, file), "utf8").matchAll(fields)].map(([, type]) => type));
}

await perform(async () => {
  const text = JSON.stringify(openApiDocument(), null, 2);
  const document = write("openapi.json", text);
  write("package.json", "{}");
  const packages = [redocly, spectral, generator, javaTemplates];
  await must(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, ...packages]);
  await installed("redocly", "lint", document);
  const rules = write("rules.yaml", 'extends: ["spectral:oas"]\n');
  await installed("spectral", "lint", document, "--ruleset", rules, "--fail-severity", "warn");
  const generated = JSON.stringify(asOpenApi30(openApiDocument()), null, 2);
  const types = await tokenTypes("java", generated);
  const narrow = types.filter((type) => !/^(java\.lang\.Long|long)$/.test(type ?? ""));
  if (types.length === 0 || narrow.length > 0)
    throw new Refusal(`${narrow.length} of ${types.length} numbers are not long: ${narrow.join(", ")}`);
  // The control: without the format the same generator takes 32 bits.
  const control = await tokenTypes("control", generated.replaceAll(/"format": "int64",?/g, ""));
  if (control.some((type) => /long/i.test(type ?? "")))
    throw new Refusal("the generator takes 64 bits without being told, so it shows nothing");
  console.log(`openapi: neither linter complains; ${types.length} tokens, revisions and sequence numbers are long in Java`);
  return 0;
});

/** @typedef {Record<string, unknown>} Json */

/**
 * The document as OpenAPI 3.0, for generators that do not know 3.1 in full: a schema without a type becomes an object, and
 * a problem its general form. Types and formats of numbers stay. @param {unknown} document @returns {Json}
 */
function asOpenApi30(document) {
  const copy = /** @type {Json} */ (walked(structuredClone(document)));
  const { identifier: _identifier, ...license } = json(json(copy.info).license);
  return { ...copy, openapi: "3.0.3", info: { ...json(copy.info), license } };
}

/** @param {unknown} value @returns {unknown} */
function walked(value) {
  if (Array.isArray(value)) return value.map(walked);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      if (key === "schema") return [key, schema(json(member))];
      if (key === "schemas") return [key, mapped(json(member))];
      return [key, walked(member)];
    }),
  );
}

/** @param {Json} from @returns {Json} */
function schema(from) {
  if (from.$ref !== undefined) return from;
  const general = list(from.allOf).find((part) => part.$ref !== undefined);
  if (general !== undefined) return general;
  const { const: only, anyOf, propertyNames: _names, ...rest } = from;
  const [first, ...others] = list(anyOf).filter((part) => part.type !== "null");
  if (first !== undefined) return { ...rest, ...schema(first), nullable: others.length < list(anyOf).length - 1 };
  const types = Array.isArray(rest.type) ? rest.type : [rest.type ?? (only === undefined ? "object" : typeof only)];
  return {
    ...rest,
    ...(only === undefined ? {} : { enum: [only] }),
    ...(rest.oneOf === undefined ? { type: types.find((type) => type !== "null"), nullable: types.includes("null") } : {}),
    ...(rest.oneOf === undefined ? {} : { oneOf: list(rest.oneOf).map(schema) }),
    ...(rest.properties === undefined ? {} : { properties: mapped(json(rest.properties)) }),
    ...(rest.items === undefined ? {} : { items: schema(json(rest.items)) }),
    ...(rest.additionalProperties === undefined ? {} : { additionalProperties: rest.additionalProperties !== false }),
  };
}

/** @param {Json} schemas @returns {Json} */
function mapped(schemas) {
  return Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, schema(json(one))]));
}

/** @param {unknown} value @returns {Json} */
function json(value) {
  return /** @type {Json} */ (value);
}

/** @param {unknown} value @returns {readonly Json[]} */
function list(value) {
  return Array.isArray(value) ? value : [];
}
