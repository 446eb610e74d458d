// A resource name as part of a URL: each segment percent-encoded once, slashes kept. Must refuse what fetch would silently rewrite into another name.
export function resourcePath(resource: string): string {
  if (resource === "") throw new RangeError("a resource name must not be empty");
  return resource.split("/").map(encodeSegment).join("/");
}

function encodeSegment(segment: string): string {
  if (segment === "" || segment === "." || segment === "..") {
    throw new RangeError(`a resource name must not have the segment ${JSON.stringify(segment)}: URLs drop it on the way`);
  }
  return encodeURIComponent(segment);
}
