// The paths of the API up to the resource name, and the methods that each route answers.

export const RESOURCE_PREFIX = "/v1/resources/";
export const HISTORY_PREFIX = "/v1/history/";
export const FENCE_PREFIX = "/v1/fences/";
export const CALL_PREFIX = "/v1/call/";

/** The Allow header of each route. */
export const allowed = {
  resource: "GET, HEAD, PUT, PATCH, DELETE",
  /** The name of a resource may end so, too. */
  seal: "GET, HEAD, PUT, PATCH, DELETE, POST",
  read: "GET, HEAD",
  transaction: "POST",
  call: "POST",
  fence: "GET, HEAD, POST",
} as const;
