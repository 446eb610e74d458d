// Which bodies are read at all: JSON in UTF-8, not compressed. A merge patch must name itself or be plain JSON; other patch formats would be misread as documents.
import { Problem } from "./problem.js";
import type { RequestHeaders } from "./request-headers.js";

const jsonOnly = ["application/json"];
const mergePatch = ["application/merge-patch+json", "application/json"];
const UTF8 = /^charset=(?:utf-8|"utf-8")$/i;

export function mediaTypeFault(headers: RequestHeaders, purpose: "document" | "merge_patch"): Problem | undefined {
  if (headers.contentEncoding !== undefined && headers.contentEncoding.toLowerCase() !== "identity") {
    return refuse("Compressed bodies are not accepted; send the JSON as it is.");
  }
  const field = headers.contentType;
  if (field === "application/json") return undefined;
  const accepted = purpose === "document" ? jsonOnly : mergePatch;
  if (field === undefined) return refuse(`The Content-Type header is missing; it must be ${accepted.join(" or ")}.`);
  const [type = "", ...parameters] = field.split(";").map((part) => part.trim());
  if (!accepted.includes(type.toLowerCase())) return refuse(`The Content-Type must be ${accepted.join(" or ")}.`);
  if (!parameters.every((parameter) => UTF8.test(parameter))) return refuse("JSON is UTF-8; no other charset or parameter is accepted.");
  return undefined;
}

function refuse(detail: string): Problem {
  return new Problem("media_type_unsupported", detail);
}
