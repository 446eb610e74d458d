// The document as OpenAPI 3.0, for generators that do not know 3.1 in full: a schema without a type
// becomes an object, and a problem its general form. Types and formats of numbers stay.

/** @typedef {Record<string, unknown>} Json */

/** @param {unknown} document @returns {Json} */
export function asOpenApi30(document) {
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
